package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"hbackup/storage"
)

// Try runs the case on an empty location, outside of go test, and leaves the
// store open. It gives what failed, in the words that go test would show; none
// means that the promise is kept, or that the store has no need of it.
func (c Case) Try(ctx context.Context, s storage.Store, opts ...Option) []string {
	t := &trial{ctx: ctx}
	ended := make(chan struct{})
	go func() { // of its own, so that FailNow can end it
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("the case broke off: %v", p)
			}
		}()
		c.run(&env{T: t, ctx: ctx, s: s, o: defaults(opts)})
	}()
	<-ended
	return t.failures
}

// trial is the T of Try.
type trial struct {
	ctx context.Context

	mu       sync.Mutex
	failures []string
}

var _ T = (*trial)(nil)

func (t *trial) Context() context.Context { return t.ctx }
func (t *trial) Helper()                  {}

func (t *trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

func (t *trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

func (t *trial) Fatal(args ...any) { t.Fatalf("%s", fmt.Sprint(args...)) }

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// FailNow ends the goroutine of the case, which is the only one that calls it.
func (t *trial) FailNow() { runtime.Goexit() }

// Skip ends the case without a failure.
func (t *trial) Skip(...any) { runtime.Goexit() }
