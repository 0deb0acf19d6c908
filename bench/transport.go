package bench

import (
	"context"
	"io"
	"net/http"
	"time"
)

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
