package ui

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Console is standard error: messages above, and on a terminal at most one
// status line below them that is redrawn in place. Everything that writes to
// standard error goes through it, so that lines never mix.
type Console struct {
	out      io.Writer
	terminal bool
	width    func() int

	mu     sync.Mutex
	status string // on the screen right now
}

// NewConsole looks whether out is a terminal.
func NewConsole(out io.Writer) *Console {
	c := &Console{out: out, width: func() int { return 0 }}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		c.terminal = true
		c.width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return w
		}
	}
	return c
}

// Terminal reports whether a status line can be drawn.
func (c *Console) Terminal() bool { return c.terminal }

// Write writes a message, which ends its line, above the status line.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == "" {
		return c.out.Write(b)
	}
	if _, err := io.WriteString(c.out, eraseLine); err != nil {
		return 0, err
	}
	n, err := c.out.Write(b)
	if err == nil {
		_, err = io.WriteString(c.out, c.status)
	}
	return n, err
}

const eraseLine = "\r\x1b[K"

// Status replaces the status line; "" takes it away.
func (c *Console) Status(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line = cut(line, c.width())
	if line == c.status {
		return
	}
	// A status that cannot be drawn is no reason to stop a backup.
	_, _ = io.WriteString(c.out, eraseLine+line)
	c.status = line
}
