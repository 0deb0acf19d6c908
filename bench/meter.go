package bench

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
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

// Transport counts at an HTTP transport. Bytes are those of bodies, without
// headers.
func (m *Meter) Transport(inner http.RoundTripper, kind func(*http.Request) string) http.RoundTripper {
	return &transport{inner: inner, meter: m, kind: kind}
}

type transport struct {
	inner http.RoundTripper
	meter *Meter
	kind  func(*http.Request) string
}

// settle is how long a request that has left goes on after its context has ended.
const settle = 15 * time.Second

// settled gives a context that ends some time after the other: a request that was
// given up half-way may still be carried out, behind the back of who clears away.
func settled(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(settle, cancel) })
	return longer, func() { stop(); cancel() }
}

// RoundTrip sends one request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := settled(req.Context())
	resp, err := t.send(req.WithContext(ctx), req.Context())
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &countedBody{ReadCloser: resp.Body, count: func(n int64) { t.meter.Moved(0, n) }, closed: cancel}
	return resp, nil
}

// send sends it unless the caller has given up before.
func (t *transport) send(req *http.Request, caller context.Context) (*http.Response, error) {
	if err := t.meter.Request(caller, t.kind(req)); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if req.ContentLength > 0 { // the body itself must stay what it is: the transport may know it
		t.meter.Moved(req.ContentLength, 0)
	} else if req.Body != nil && req.Body != http.NoBody { // of unknown length
		counted := *req
		counted.Body = &countedBody{ReadCloser: req.Body, count: func(n int64) { t.meter.Moved(n, 0) }}
		req = &counted
	}
	return t.inner.RoundTrip(req)
}

// countedBody counts what is read of it, and says when it is closed.
type countedBody struct {
	io.ReadCloser
	count  func(int64)
	closed func()
}

// Close closes the body.
func (b *countedBody) Close() error {
	err := b.ReadCloser.Close()
	if b.closed != nil {
		b.closed()
	}
	return err
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.count(int64(n))
	}
	return n, err
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
