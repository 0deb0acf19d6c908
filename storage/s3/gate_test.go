package s3

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the rule of the gate by its definition: what happened, and the limit
// as it follows from all of it.
type model struct{ history []event }

type event struct {
	kind  string // "enter", "accepted", "refused", "over"
	began int    // of which "enter", counted by the events before it
}

// limit replays the history from the start.
func (m *model) limit() (limit float64, under int) {
	limit = widest
	decrease := -1 // the latest one's place in the history
	for i, e := range m.history {
		switch fresh := e.began > decrease; {
		case e.kind == "enter":
			under++
			continue
		case e.kind == "accepted" && fresh:
			limit = min(limit+1/limit, widest)
		case e.kind == "refused" && fresh:
			limit = max(1, min(limit, float64(under))/2)
			decrease = i
		}
		under--
	}
	return limit, under
}

func TestGateKeepsToTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate(0)
		var m model
		type held struct {
			p     *pass
			began int
		}
		var all []held
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			limit, under := m.limit()
			if g.limit != limit || g.under != under {
				t.Fatalf("%d of %v under way; by the rule %d of %v", g.under, g.limit, under, limit)
			}
			kind := rapid.SampledFrom([]string{"enter", "enter", "enter", "accepted", "refused", "over"}).Draw(t, "kind")
			if kind == "enter" {
				_, p := g.ask()
				if (p != nil) != (under < int(limit)) {
					t.Fatalf("let in: %v, with %d of %v under way", p != nil, under, limit)
				}
				g.waiting = nil
				if p != nil {
					all = append(all, held{p, len(m.history)})
					m.history = append(m.history, event{kind, len(m.history)})
				}
				continue
			}
			if len(all) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
			h := all[i]
			all = append(all[:i], all[i+1:]...)
			map[string]func(){"accepted": h.p.accepted, "refused": h.p.refused, "over": h.p.over}[kind]()
			m.history = append(m.history, event{kind, h.began})
		}
	})
}

// TestGateGrowsByOneARound has a store that accepts everything again: with n
// requests a round the limit rises by about one with each round.
func TestGateGrowsByOneARound(t *testing.T) {
	g := newGate(0)
	g.limit = 4
	const rounds = 40
	for range rounds {
		var round []*pass
		for {
			_, p := g.ask()
			if p == nil {
				break
			}
			round = append(round, p)
		}
		for _, p := range round {
			p.accepted()
		}
	}
	if g.limit < 0.9*rounds || g.limit > 4+rounds {
		t.Fatalf("at most %v at once after %d rounds", g.limit, rounds)
	}
}

// TestGateServesAll has more requests than the limit, some of which give up: each
// of the others gets its turn, and never are there more than allowed.
func TestGateServesAll(t *testing.T) {
	g := newGate(0)
	g.limit = 1.5
	results := make(chan error)
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%3 == 0 {
			cancel()
		}
		go func() {
			defer cancel()
			p, err := g.enter(ctx)
			if err == nil {
				g.mu.Lock()
				if g.under > int(g.limit) {
					err = errors.New("too many at once")
				}
				g.mu.Unlock()
				p.over()
			}
			results <- err
		}()
	}
	for range 200 {
		if err := <-results; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if g.under != 0 || len(g.waiting) != 0 {
		t.Errorf("%d under way and %d waiting in the end", g.under, len(g.waiting))
	}
}

// TestGatePauses checks that the pause grows while the store refuses and goes
// away while it accepts.
func TestGatePauses(t *testing.T) {
	g := newGate(time.Microsecond)
	enter := func() *pass {
		g.until, g.limit = time.Time{}, widest // as if the pause were over
		p, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	old := enter()
	for range 20 {
		enter().refused()
	}
	if g.pause != g.most {
		t.Fatalf("the pause is %v after 20 refusals; want %v", g.pause, g.most)
	}
	until := g.until
	if old.refused(); g.until != until {
		t.Fatal("a refusal of a request sent earlier makes the pause longer")
	}
	g.until = time.Now().Add(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("enter: %v", err)
	}
	for range 20 {
		enter().accepted()
	}
	if g.pause != 0 {
		t.Fatalf("the pause is %v after 20 successes", g.pause)
	}
}
