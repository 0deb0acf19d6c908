package s3

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// widest is the number of requests that may be under way at once while the store
// has nothing against it. A connection each is kept.
const widest = 256

// gate paces all requests of a store together. Retrying each refused request on
// its own would add load instead: the others go on, and every refused one comes
// back. So what the store allows is learned by additive increase and
// multiplicative decrease: a refusal halves the number of requests that may be
// under way, and each round of answers that are no refusals raises it by one.
// For a while after a refusal nothing goes out at all; that pause doubles while
// the store keeps refusing and shrinks as it accepts again.
type gate struct {
	least, most time.Duration // of a pause

	mu      sync.Mutex
	limit   float64         // requests that may be under way
	under   int             // requests that are
	round   int             // decreases so far
	waiting []chan struct{} // in order; each is closed by who lets it in
	pause   time.Duration
	until   time.Time
}

func newGate(least time.Duration) *gate {
	return &gate{least: least, most: 100 * least, limit: widest}
}

// pass is the leave for one request. It is given back once.
type pass struct {
	g     *gate
	round int // in which it was given
}

// enter returns when another request may go out. Those that waited for the end
// of a pause do not leave all at once.
func (g *gate) enter(ctx context.Context) (*pass, error) {
	for {
		g.mu.Lock()
		left := time.Until(g.until)
		if left > 0 {
			left += rand.N(g.pause/2 + 1)
		}
		g.mu.Unlock()
		if left > 0 {
			if err := sleep(ctx, left); err != nil {
				g.forget(nil)
				return nil, err
			}
		}
		turn, p := g.ask()
		if p != nil {
			return p, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			g.forget(turn)
			return nil, context.Cause(ctx)
		}
	}
}

// ask gives a pass, or the channel that is closed when it is worth asking again.
func (g *gate) ask() (chan struct{}, *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under < int(g.limit) {
		g.under++
		return nil, &pass{g, g.round}
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	return turn, nil
}

// forget takes out one that does not wait any longer; a turn of its own that had
// come already is the next one's.
func (g *gate) forget(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, t := range g.waiting {
		if t == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
	g.wake()
}

// wake calls as many as there is room for. The caller holds the lock.
func (g *gate) wake() {
	for room := int(g.limit) - g.under; room > 0 && len(g.waiting) > 0; room-- {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
	}
}

// refused gives the pass back after an answer that asks for fewer requests. One
// to a request from before the latest decrease means nothing new.
func (p *pass) refused() {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.round == g.round {
		g.limit = max(1, min(g.limit, float64(g.under))/2)
		g.round++
		g.pause = min(max(2*g.pause, g.least), g.most)
		g.until = time.Now().Add(g.pause)
	}
	g.under--
	g.wake()
}

// accepted gives the pass back after an answer that is no refusal.
func (p *pass) accepted() {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.round == g.round {
		g.limit = min(g.limit+1/g.limit, widest)
		if g.pause /= 2; g.pause < g.least {
			g.pause = 0
		}
	}
	g.under--
	g.wake()
}

// over gives the pass back when there was no answer from which to learn.
func (p *pass) over() {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.wake()
}

// narrowed reports whether the store has asked for fewer requests of late.
func (g *gate) narrowed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit < widest
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
