package hadoop

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Patience says how long calls are repeated while no name node is able to answer
// them: down, standby, starting, in safe mode.
//
// A name node that was never heard of is more often a wrong address, or one that
// is down, than one in a fail-over, and somebody may be waiting for the word; one
// that was heard of comes back.
type Patience struct {
	// RetryFor is how long it lasts after a name node was once heard of, if only to
	// say that it is no active one (default 30 s; it should exceed a fail-over).
	// Negative: not at all.
	RetryFor time.Duration
	// StartFor is how long it lasts before that, for all calls together: from the first
	// one on (default 5 s, at most RetryFor).
	StartFor time.Duration
	// Log hears what is waited for, once each time. Nil: nobody does.
	Log *slog.Logger
}

func (p Patience) withDefaults() Patience {
	if p.RetryFor == 0 {
		p.RetryFor = 30 * time.Second
	}
	if p.StartFor == 0 {
		p.StartFor = 5 * time.Second
	}
	p.StartFor = min(p.StartFor, p.RetryFor)
	return p
}

// Waiter is the patience that all calls to one file system share.
type Waiter struct {
	Patience
	uri   string
	first atomic.Pointer[time.Time] // when the first call began
	heard atomic.Bool
	told  atomic.Bool // that somebody waits
}

// NewWaiter gives the patience with the file system of a URI.
func (p Patience) NewWaiter(uri string) *Waiter {
	return &Waiter{Patience: p.withDefaults(), uri: uri}
}

// Heard says that a name node has answered, whatever it was.
func (w *Waiter) Heard() { w.heard.Store(true) }

// Served says that a call was answered as it should be.
func (w *Waiter) Served() {
	w.heard.Store(true)
	w.told.Store(false)
}

// Wait is one call's waiting.
type Wait struct {
	w     *Waiter
	began time.Time
	pause time.Duration
}

// Begin starts the clock of a call.
func (w *Waiter) Begin() *Wait {
	now := time.Now()
	w.first.CompareAndSwap(nil, &now)
	return &Wait{w: w, began: now, pause: 100 * time.Millisecond}
}

// tellAfter is how long a wait may last before it is told of.
const tellAfter = time.Second

// Again pauses before the call is tried once more because of an error; false means
// that the patience is over or the context has ended.
func (t *Wait) Again(ctx context.Context, because error) bool {
	limit, waited := t.w.RetryFor, time.Since(t.began)
	if !t.w.heard.Load() {
		limit, waited = t.w.StartFor, time.Since(*t.w.first.Load())
	}
	if ctx.Err() != nil || waited+t.pause > limit {
		return false
	}
	if t.w.Log != nil && waited >= tellAfter && !t.w.told.Swap(true) {
		t.w.Log.Warn("waiting for HDFS to answer", "file_system", t.w.uri, "at_most", (limit - waited).Round(time.Second).String(), "error", because)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(t.pause/2 + rand.N(t.pause/2)):
	}
	t.pause = min(2*t.pause, 2*time.Second)
	return true
}
