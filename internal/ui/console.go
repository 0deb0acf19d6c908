package ui

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Console is standard error: messages above, and on a terminal status lines below
// them that are redrawn in place. Everything that writes to
// standard error goes through it, so that lines never mix.
type Console struct {
	out      io.Writer
	terminal bool
	size     func() (width, height int) // of the terminal; 0: not known

	mu     sync.Mutex
	status []string // on the screen right now
}

// NewConsole looks whether out is a terminal.
func NewConsole(out io.Writer) *Console {
	c := &Console{out: out, size: func() (int, int) { return 0, 0 }}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		c.terminal = true
		c.size = func() (int, int) {
			w, h, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80, 24
			}
			return w, h
		}
	}
	return c
}

// Terminal reports whether status lines can be drawn.
func (c *Console) Terminal() bool { return c.terminal }

// Room is how many status lines may be drawn: some, so that messages stay in sight.
func (c *Console) Room() int {
	_, height := c.size()
	return min(max(height/2, 1), maxStatus)
}

// maxStatus bounds the status lines on a high terminal.
const maxStatus = 12

// Write writes a message, which ends its line, above the status lines.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.status) == 0 {
		return c.out.Write(b)
	}
	if _, err := io.WriteString(c.out, erase(len(c.status))); err != nil {
		return 0, err
	}
	n, err := c.out.Write(b)
	if err == nil {
		_, err = io.WriteString(c.out, strings.Join(c.status, "\n"))
	}
	return n, err
}

const (
	eraseLine = "\r\x1b[K"
	lineUp    = "\x1b[A"
)

// erase takes status lines away; the cursor is in the last of them.
func erase(lines int) string {
	if lines < 2 {
		return eraseLine
	}
	return eraseLine + strings.Repeat(lineUp+eraseLine, lines-1)
}

// Status replaces the status lines; none takes them away.
func (c *Console) Status(lines ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, _ := c.size()
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = cut(l, width)
	}
	if slices.Equal(shown, c.status) {
		return
	}
	// A status that cannot be drawn is no reason to stop a backup.
	_, _ = io.WriteString(c.out, erase(len(c.status))+strings.Join(shown, "\n"))
	c.status = shown
}
