package ui

import (
	"io"
	"sync"
)

// Lines lets many goroutines write whole lines to one writer, and keeps the
// first error: output that got lost must not look like success.
type Lines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
	n   int64
}

// NewLines wraps w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Write passes b on in one piece.
func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.w.Write(b)
	l.n += int64(n)
	l.err = err
	return n, err
}

// Err gives the first error of a write, and Written the bytes that went through.
func (l *Lines) Err() error { l.mu.Lock(); defer l.mu.Unlock(); return l.err }

// Written gives the number of bytes that went through.
func (l *Lines) Written() int64 { l.mu.Lock(); defer l.mu.Unlock(); return l.n }
