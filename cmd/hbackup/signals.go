package main

import (
	"context"
	"os"
	"time"
)

// interruption is the cause of a context that a signal has cancelled.
type interruption struct{}

func (interruption) Error() string { return "interrupted" }
func (interruption) Unwrap() error { return context.Canceled } // so that it is classed as KindInterrupted

var errInterrupted = interruption{}

// echo is how soon after the first signal another one is the same: programs that
// start us, such as timeout(1), signal us and then our process group.
const echo = 500 * time.Millisecond

// interruptible gives a context that the first signal cancels, so that the verb
// can tidy up; the next one after its echo ends the process at once.
func interruptible(parent context.Context, signals <-chan os.Signal, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-stopped:
			return
		}
		for first := time.Now(); ; {
			select {
			case <-signals:
				if time.Since(first) < echo {
					continue
				}
				exit(int(exitInterrupted))
			case <-stopped:
			}
			return
		}
	}()
	return ctx, func() {
		close(stopped)
		cancel(nil)
	}
}

// wasInterrupted reports whether a signal ended the context.
func wasInterrupted(ctx context.Context) bool {
	return context.Cause(ctx) == error(errInterrupted)
}
