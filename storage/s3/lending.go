package s3

import (
	"context"
	"io"
	"net"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// lendingDial makes connections that write a payload straight out of its buffer.
// The standard library would copy it through 32 KiB at a time, with a system
// call for each.
func lendingDial(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &lendingConn{Conn: conn}, nil
	}
}

type lendingConn struct{ net.Conn }

// lentAtOnce bounds a single write, so that an upload that was given up ends soon.
const lentAtOnce = 1 << 20

// ReadFrom sends r. It is what the transport calls with the body of a request.
func (c *lendingConn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{c.Conn}, r)
	}
	body, ok := limited.R.(*payloadReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{c.Conn}, r)
	}
	var total int64
	for limited.N > 0 {
		b, err := body.lend(int(min(limited.N, lentAtOnce)))
		if err == io.EOF {
			break
		}
		if err != nil {
			return total, err
		}
		n, err := c.Conn.Write(b)
		body.back()
		total += int64(n)
		limited.N -= int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
