package s3

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// gate holds back all requests of a store for a while after it asked for fewer
// of them. Retrying each request on its own would add load instead: the others
// go on, and every refused one comes back. The pause doubles while the store
// keeps refusing and shrinks as it accepts again.
type gate struct {
	least, most time.Duration

	mu    sync.Mutex
	pause time.Duration
	until time.Time
}

func newGate(least time.Duration) *gate { return &gate{least: least, most: 100 * least} }

// wait returns when requests may go out again. Those that waited do not leave
// all at once.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	left := time.Until(g.until)
	if left > 0 {
		left += rand.N(g.pause/2 + 1)
	}
	g.mu.Unlock()
	if left <= 0 {
		return nil
	}
	return sleep(ctx, left)
}

// refused notes an answer that asks for fewer requests. Those that come in
// during a pause were sent before it and mean nothing new.
func (g *gate) refused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.until) {
		return
	}
	g.pause = min(max(2*g.pause, g.least), g.most)
	g.until = now.Add(g.pause)
}

func (g *gate) accepted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pause > 0 && !time.Now().Before(g.until) {
		if g.pause /= 2; g.pause < g.least {
			g.pause = 0
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
