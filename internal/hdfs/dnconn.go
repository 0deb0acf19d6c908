package hdfs

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// dnConn is a connection to a data node. Every wait on it has a time limit, and
// it is closed when its session's user goes, whether the library remembers it or
// not. A reader's passes on verified bytes only, see packets.
//
// For writers it also works around two traits of the library. After a failed
// write its goroutines never end; and after a failed acknowledgement it does not
// say so until the block is finished. So once something went wrong here, writes
// are swallowed and reads fail: the library then always comes to its end in good
// order and reports the failed acknowledgement, and the Writer, which asks
// failure after every step, reports the first cause.
type dnConn struct {
	net.Conn
	s       *session
	timeout time.Duration
	writing bool

	observed sync.Once // Observe is told of it once

	mu  sync.Mutex
	err error

	packets *packets // since a request to read was sent in clear
}

// dataNodeError says which data node a failure is about.
type dataNodeError struct {
	addr string
	err  error
}

func (e *dataNodeError) Error() string { return fmt.Sprintf("data node %s: %v", e.addr, e.err) }
func (e *dataNodeError) Unwrap() error { return e.err }

func (c *dnConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends the connection; the first cause counts.
func (c *dnConn) fail(err error) error {
	c.mu.Lock()
	if c.err == nil {
		c.err = &dataNodeError{c.Conn.RemoteAddr().String(), err}
	}
	err = c.err
	c.mu.Unlock()
	c.Conn.Close()
	return err
}

// verifying reports whether what was read came through packets. When the
// library seals the connection (data transfer protection) it does not.
func (c *dnConn) verifying() bool { return c.packets != nil }

func (c *dnConn) Read(b []byte) (int, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	if c.packets == nil {
		return c.receive(b)
	}
	n, err := c.packets.Read(b)
	if err != nil {
		return n, c.fail(err)
	}
	return n, nil
}

func (c *dnConn) receive(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, c.fail(err)
	}
	n, err := c.Conn.Read(b)
	if err != nil {
		return n, c.fail(err)
	}
	return n, nil
}

func (c *dnConn) Write(b []byte) (int, error) {
	err := c.failure()
	if err == nil {
		c.observe()
		if !c.writing && c.packets == nil && isReadRequest(b) {
			c.packets = &packets{receive: c.receive}
		}
		if err = c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err == nil {
			var n int
			if n, err = c.Conn.Write(b); err == nil {
				return n, nil
			}
		}
		err = c.fail(err)
	}
	if c.writing {
		return len(b), nil
	}
	return 0, err
}

// observe tells of the request that a connection begins with.
func (c *dnConn) observe() {
	c.observed.Do(func() {
		if c.writing {
			c.s.cfg.Observe(WriteBlock)
		} else {
			c.s.cfg.Observe(ReadBlock)
		}
	})
}

// SetDeadline and its siblings are the library's way to set limits; here every
// wait has its own.
func (c *dnConn) SetDeadline(time.Time) error      { return nil }
func (c *dnConn) SetReadDeadline(time.Time) error  { return nil }
func (c *dnConn) SetWriteDeadline(time.Time) error { return nil }

// Close is called by the connection's one user, so nobody reads any more.
func (c *dnConn) Close() error {
	c.s.forget(c)
	return c.Conn.Close()
}
