package hdfs

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// nnConn is a connection to a name node. It sets a deadline for every call, is
// unusable after the first failure (an answer that comes late would be taken for
// that of the next call), and reads along: what the library hides in an answer
// (whether a file is still open for writing, the text of an exception) is kept
// in the session.
//
// The library sends each request in one Write and has one call under way.
type nnConn struct {
	net.Conn
	s    *session
	addr string

	mu     sync.Mutex
	err    error
	method string // of the call under way; "" during the handshake
	callID int32
	frame  frame
	whole  []byte // an answer that was read ahead, as far as the library has not taken it
	local  []byte // what is left of an answer that the name node was not asked for
}

func (c *nnConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *nnConn) fail(err error) error {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	c.mu.Unlock()
	c.Conn.Close()
	return err
}

func (c *nnConn) Write(b []byte) (int, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	method, id := requestMethod(b)
	if local := c.s.unasked(method, b); local != nil {
		c.mu.Lock()
		c.local = local
		c.mu.Unlock()
		return len(b), nil
	}
	if method == complete {
		c.s.completing(b)
	}
	sent, err := c.s.amended(method, b)
	if err != nil {
		return 0, c.fail(err)
	}
	c.mu.Lock()
	c.method, c.callID = method, id
	c.frame = frame{keepBody: isRead(method)}
	c.mu.Unlock()
	if method != "" {
		c.s.sent(method)
	}
	if method != "" && method != renewLease {
		c.s.cfg.Observe(method)
	}
	if err := c.Conn.SetDeadline(time.Now().Add(c.s.cfg.CallTimeout)); err != nil {
		return 0, c.fail(err)
	}
	if _, err := c.Conn.Write(sent); err != nil {
		return 0, c.fail(err)
	}
	return len(b), nil
}

func (c *nnConn) Read(b []byte) (int, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	n := copy(b, c.local)
	c.local = c.local[n:]
	c.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	n, err := c.read(b)
	if n > 0 {
		c.mu.Lock()
		done, frameErr := c.frame.add(b[:n])
		method, f := c.method, c.frame
		c.mu.Unlock()
		if frameErr != nil {
			return 0, c.fail(frameErr)
		}
		if done && method != "" {
			c.s.waiter.Heard()
			a := parseAnswer(method, f.kept)
			if a.exception == "" {
				c.s.answered.Store(&c.addr)
				c.s.served()
			}
			c.s.received(a)
		}
	}
	if err != nil {
		return n, c.fail(err)
	}
	return n, nil
}

// read gives the bytes of an answer as they come, or those of a writer's call as
// readWhole has them.
func (c *nnConn) read(b []byte) (int, error) {
	c.mu.Lock()
	ahead := c.frame.got == 0 && repeatedWhileWriting[c.method]
	c.mu.Unlock()
	if ahead && c.s.isHolding() {
		var err error
		if c.whole, err = c.readWhole(); err != nil {
			return 0, err
		}
	}
	if len(c.whole) > 0 {
		n := copy(b, c.whole)
		c.whole = c.whole[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *nnConn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

const (
	// maxAnswer bounds what the library allocates for an answer before it has read
	// it; Hadoop's own limit, ipc.maximum.response.length, is 128 MiB by default.
	maxAnswer = 256 << 20
	// keptHead is enough for an answer's header with the trace of an exception.
	keptHead = 64 << 10
)

// frame collects one answer: 4 bytes length, then as many bytes.
type frame struct {
	keepBody bool
	size     [4]byte
	got      int64 // bytes seen, the length included
	kept     []byte
}

// add takes the next bytes and reports whether the frame is whole.
func (f *frame) add(b []byte) (bool, error) {
	for f.got < 4 && len(b) > 0 {
		f.size[f.got] = b[0]
		f.got++
		b = b[1:]
	}
	if f.got < 4 {
		return false, nil
	}
	want := int64(binary.BigEndian.Uint32(f.size[:]))
	if want > maxAnswer {
		return false, fmt.Errorf("the name node announces an answer of %d bytes; it speaks another protocol, or ipc.maximum.response.length is set above %d", want, int64(maxAnswer))
	}
	f.got += int64(len(b))
	if room := keptHead - len(f.kept); f.keepBody {
		f.kept = append(f.kept, b...)
	} else if room > 0 {
		f.kept = append(f.kept, b[:min(len(b), room)]...)
	}
	return f.got >= 4+want, nil
}

// requestMethod gives the name of the method that a request packet calls and the
// number of the call, or "" for the packets of the handshake.
func requestMethod(b []byte) (string, int32) {
	if len(b) < 4 {
		return "", 0
	}
	header, rest, ok := delimited(b[4:])
	id := int32(protowire.DecodeZigZag(varintField(header, 3)))
	if !ok || id < 0 { // handshake and SASL are negative
		return "", 0
	}
	call, _, ok := delimited(rest)
	if !ok {
		return "", 0
	}
	method, _ := bytesField(call, 1)
	return string(method), id
}
