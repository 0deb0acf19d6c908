package bench

import (
	"context"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Meter counts the requests that leave for a store and the bytes that move, and
// makes each request wait first when a latency is set.
type Meter struct {
	latency time.Duration
	paused  atomic.Bool // no request waits

	mu sync.Mutex
	t  Traffic
}

// NewMeter gives a meter at zero.
func NewMeter(latency time.Duration) *Meter {
	return &Meter{latency: latency, t: Traffic{Requests: map[string]int64{}}}
}

// Traffic is what went to a store and came from it.
type Traffic struct {
	Requests map[string]int64 // by kind
	Up, Down int64            // bytes that this process sent and got
	Copied   int64            // bytes that the store copied inside of itself
}

// Total gives the number of requests.
func (t Traffic) Total() (n int64) {
	for _, c := range t.Requests {
		n += c
	}
	return n
}

// Add gives the sum of both.
func (t Traffic) Add(u Traffic) Traffic {
	sum := Traffic{Requests: maps.Clone(t.Requests), Up: t.Up + u.Up, Down: t.Down + u.Down, Copied: t.Copied + u.Copied}
	if sum.Requests == nil {
		sum.Requests = map[string]int64{}
	}
	for kind, n := range u.Requests {
		sum.Requests[kind] += n
	}
	return sum
}

// sub gives what came after an earlier state.
func (t Traffic) sub(u Traffic) Traffic {
	d := Traffic{Requests: map[string]int64{}, Up: t.Up - u.Up, Down: t.Down - u.Down, Copied: t.Copied - u.Copied}
	for kind, n := range t.Requests {
		if n -= u.Requests[kind]; n != 0 {
			d.Requests[kind] = n
		}
	}
	return d
}

// Traffic gives what was counted so far.
func (m *Meter) Traffic() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.t
	t.Requests = maps.Clone(t.Requests)
	return t
}

// Request counts one request and waits for the latency. The error is that of ctx.
func (m *Meter) Request(ctx context.Context, kind string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	m.t.Requests[kind]++
	m.mu.Unlock()
	if m.latency == 0 || m.paused.Load() {
		return nil
	}
	t := time.NewTimer(m.latency)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Moved counts bytes that were sent and got, and Copied those that the store
// copied by itself.
func (m *Meter) Moved(up, down int64) {
	m.mu.Lock()
	m.t.Up += up
	m.t.Down += down
	m.mu.Unlock()
}

// Copied is described at Moved.
func (m *Meter) Copied(n int64) {
	m.mu.Lock()
	m.t.Copied += n
	m.mu.Unlock()
}

// unhurried runs f without latency.
func (m *Meter) unhurried(f func() error) error {
	m.paused.Store(true)
	defer m.paused.Store(false)
	return f()
}

// Conn counts all bytes of a connection, the protocol's own too.
func (m *Meter) Conn(c net.Conn) net.Conn { return &conn{c, m} }

type conn struct {
	net.Conn
	meter *Meter
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.Moved(0, int64(n))
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.Moved(int64(n), 0)
	return n, err
}
