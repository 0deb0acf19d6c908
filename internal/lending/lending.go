// Package lending sends bodies of HTTP requests straight out of the memory they
// lie in. The standard library would copy them through 32 KiB at a time, with a
// system call for each.
package lending

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Body is the body of one attempt at a request. The transport may go on reading
// for a moment after it has answered: the memory may be used again only after
// Revoke.
type Body struct {
	mu      sync.Mutex // held while the memory is read, also by a connection
	data    []byte     // what was not read yet
	revoked bool
}

// NewBody gives a body with these bytes.
func NewBody(data []byte) *Body { return &Body{data: data} }

var errRevoked = errors.New("the body was taken back")

// Read copies bytes.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.revoked:
		return 0, errRevoked
	case len(b.data) == 0:
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

// Close does nothing: the memory belongs to whoever made the body.
func (b *Body) Close() error { return nil }

// Revoke returns when nobody looks at the memory any more, and nobody will. The
// request must be over, so that a connection which is writing gives up.
func (b *Body) Revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.revoked = nil, true
}

// writeTo sends at most n bytes to the connection.
func (b *Body) writeTo(conn net.Conn, n int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.revoked:
		return 0, errRevoked
	case len(b.data) == 0:
		return 0, io.EOF
	}
	m, err := conn.Write(b.data[:min(n, int64(len(b.data)))])
	b.data = b.data[m:]
	return m, err
}

// Dial makes connections.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Wrap gives connections that send a Body without copying it. Under TLS it is
// copied all the same.
func Wrap(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{c}, nil
	}
}

type conn struct{ net.Conn }

// atOnce bounds a single write, so that a request that was given up ends soon.
const atOnce = 1 << 20

// ReadFrom sends r. It is what the transport calls with the body of a request.
func (c *conn) ReadFrom(r io.Reader) (total int64, err error) {
	limited, ok := r.(*io.LimitedReader)
	var body *Body
	if ok {
		body, ok = limited.R.(*Body)
	}
	if !ok {
		return io.Copy(struct{ io.Writer }{c.Conn}, r)
	}
	for limited.N > 0 {
		n, err := body.writeTo(c.Conn, min(limited.N, atOnce))
		total += int64(n)
		limited.N -= int64(n)
		switch err {
		case nil:
		case io.EOF:
			return total, nil
		default:
			return total, err
		}
	}
	return total, nil
}
