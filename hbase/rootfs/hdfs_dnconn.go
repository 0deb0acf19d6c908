package rootfs

import (
	"net"
	"sync"
	"time"
)

// dnConn is a connection to a data node. Every wait on it has a time limit, and
// it is closed when its session's user goes, whether the library remembers it or not.
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

	mu  sync.Mutex
	err error

	head       []byte // read ahead, for the library's many small reads
	start, end int
}

// readAhead covers a packet's header and its checksums (64 KiB of data have 512
// bytes of them), so that a packet costs two system calls instead of four.
const readAhead = 4 << 10

func (c *dnConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *dnConn) fail(err error) error {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	c.mu.Unlock()
	c.Conn.Close()
	return err
}

func (c *dnConn) Read(b []byte) (int, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	if c.start < c.end {
		n := copy(b, c.head[c.start:c.end])
		c.start += n
		return n, nil
	}
	if len(b) >= readAhead {
		return c.receive(b)
	}
	if c.head == nil {
		c.head = make([]byte, readAhead)
	}
	n, err := c.receive(c.head)
	c.start, c.end = 0, n
	n = copy(b, c.head[:n])
	c.start = n
	return n, err
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
		if err = c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err == nil {
			var n int
			if n, err = c.Conn.Write(b); err == nil {
				return n, nil
			}
		}
		c.fail(err)
	}
	if c.writing {
		return len(b), nil
	}
	return 0, err
}

// SetDeadline and its siblings are the library's way to set limits; here every
// wait has its own.
func (c *dnConn) SetDeadline(time.Time) error      { return nil }
func (c *dnConn) SetReadDeadline(time.Time) error  { return nil }
func (c *dnConn) SetWriteDeadline(time.Time) error { return nil }

func (c *dnConn) Close() error {
	c.s.forget(c)
	return c.Conn.Close()
}
