package rpc

import (
	"context"
	"sync"
)

// pool keeps one connection per address and service. All belong to the one
// user that the client authenticates as.
type pool struct {
	cfg *Config

	mu     sync.Mutex
	closed bool
	slots  map[Peer]*slot
}

// slot is the place of one connection. opening is held by the one call that
// dials, so that the others wait for it instead of dialling too.
type slot struct {
	opening chan struct{}
	conn    *conn // guarded by pool.mu
}

func newPool(cfg *Config) *pool { return &pool{cfg: cfg, slots: map[Peer]*slot{}} }

// get gives a live connection, opening one when there is none.
func (p *pool) get(ctx context.Context, peer Peer) (*conn, error) {
	p.mu.Lock()
	s := p.slots[peer]
	if s == nil {
		s = &slot{opening: make(chan struct{}, 1)}
		p.slots[peer] = s
	}
	p.mu.Unlock()

	if c, err := p.live(s); c != nil || err != nil {
		return c, err
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, &ConnError{Peer: peer, Phase: PhaseDial, Err: ctx.Err()}
	}
	if c, err := p.live(s); c != nil || err != nil {
		return c, err // another call has opened it meanwhile
	}
	c, err := open(ctx, p.cfg, peer)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		s.conn = c
	}
	p.mu.Unlock()
	if closed {
		c.close()
		return nil, errClosed
	}
	return c, nil
}

func (p *pool) live(s *slot) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if s.conn != nil && s.conn.alive() {
		return s.conn, nil
	}
	return nil, nil
}

// close ends all connections and waits for their goroutines.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var open []*conn
	for _, s := range p.slots {
		if s.conn != nil {
			open = append(open, s.conn)
		}
	}
	p.mu.Unlock()
	for _, c := range open {
		c.close()
	}
}
