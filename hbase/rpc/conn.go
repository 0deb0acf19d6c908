package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// conn is one connection to one service of one server. Calls share it: each has
// an id; one goroutine writes, one hands the answers to the calls that wait. A call
// that gives up leaves the connection as it is; its late answer is dropped.
type conn struct {
	peer     Peer
	nc       net.Conn
	maxFrame int
	outgoing chan []byte // whole frames, to the one goroutine that writes

	mu       sync.Mutex
	lastID   uint32
	waiting  map[uint32]chan response
	failure  error // why the connection ended
	answered bool  // some frame has arrived

	ended chan struct{}  // closed with failure set
	work  sync.WaitGroup // the reading and the writing goroutine
}

const (
	cellCodec  = "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"
	writeLimit = 30 * time.Second // for one frame; a server that does not read is as good as dead
)

// open dials, authenticates, sends the connection header and starts reading.
// An error after dialling is a *ConnError too.
func open(ctx context.Context, cfg *Config, peer Peer) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	nc, err := cfg.Dialer(ctx, "tcp", peer.Addr)
	if err != nil {
		return nil, &ConnError{Peer: peer, Phase: PhaseDial, Err: err}
	}
	fail := func(err error) (*conn, error) {
		nc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, &ConnError{Peer: peer, Phase: PhaseHandshake, Err: err}
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	secured, err := cfg.Auth.Authenticate(ctx, nc, peer)
	if err != nil {
		stop()
		return fail(err)
	}
	header, err := connectionHeader(cfg.Auth.UserInfo(), peer.Service)
	if err == nil {
		_, err = secured.Write(header)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fail(err)
	}
	c := &conn{
		peer:     peer,
		nc:       secured,
		maxFrame: cfg.MaxFrame,
		outgoing: make(chan []byte),
		waiting:  map[uint32]chan response{},
		ended:    make(chan struct{}),
	}
	c.work.Go(c.read)
	c.work.Go(c.write)
	return c, nil
}

// connectionHeader gives int32 length and the ConnectionHeader.
func connectionHeader(user *hbpb.UserInformation, service Service) ([]byte, error) {
	b, err := proto.Marshal(&hbpb.ConnectionHeader{
		UserInfo:            user,
		ServiceName:         proto.String(string(service)),
		CellBlockCodecClass: proto.String(cellCodec),
		// Servers choose their answers by the client's version: from 1.4 on all
		// results are cell blocks and scanner resets have their own class.
		VersionInfo: &hbpb.VersionInfo{
			Version: proto.String("2.6.0"), Url: proto.String(""), Revision: proto.String(""),
			User: proto.String(""), Date: proto.String(""), SrcChecksum: proto.String(""),
			VersionMajor: proto.Uint32(2), VersionMinor: proto.Uint32(6),
		},
	})
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), nil
}

// call sends one request and waits for its answer. The context's deadline is
// told to the server, which drops expired calls without an answer. The cells
// returned belong to the caller.
func (c *conn) call(ctx context.Context, method string, req, resp proto.Message, cells []byte) ([]byte, error) {
	id, answer, err := c.register()
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	if err := c.send(ctx, id, method, req, cells); err != nil {
		return nil, err
	}
	var r response
	select {
	case r = <-answer:
	case <-ctx.Done():
		return nil, &ConnError{Peer: c.peer, Phase: PhaseAnswer, Err: ctx.Err()}
	case <-c.ended:
		select {
		case r = <-answer: // it arrived just before the end
		default:
			return nil, c.endError(PhaseAnswer)
		}
	}
	if e := r.header.Exception; e != nil {
		return nil, remoteError(method, c.peer, e)
	}
	if err := proto.Unmarshal(r.result, resp); err != nil {
		return nil, &ConnError{Peer: c.peer, Phase: PhaseDecode, Err: corruptf("result of %s: %v", method, err)}
	}
	return r.cells, nil
}

func (c *conn) register() (uint32, chan response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return 0, nil, c.endErrorLocked(PhaseSend)
	}
	for { // ids wrap around; 0 and the connection's own id are left out
		c.lastID++
		if _, used := c.waiting[c.lastID]; !used && c.lastID != 0 && c.lastID != connectionFailed {
			break
		}
	}
	answer := make(chan response, 1)
	c.waiting[c.lastID] = answer
	return c.lastID, answer, nil
}

func (c *conn) forget(id uint32) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// send hands one frame to the writing goroutine. From then on the server may
// see the call.
func (c *conn) send(ctx context.Context, id uint32, method string, req proto.Message, cells []byte) error {
	header := &hbpb.RequestHeader{
		CallId:       &id,
		MethodName:   &method,
		RequestParam: proto.Bool(true),
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline).Milliseconds(), 1)
		header.Timeout = proto.Uint32(uint32(min(left, 1<<31-1)))
	}
	if len(cells) > 0 {
		header.CellBlockMeta = &hbpb.CellBlockMeta{Length: proto.Uint32(uint32(len(cells)))}
	}
	frame, err := requestFrame(header, req, cells)
	if err != nil {
		return &ConnError{Peer: c.peer, Phase: PhaseEncode, Err: fmt.Errorf("%s: %w", method, err)}
	}
	if ctx.Err() != nil {
		return &ConnError{Peer: c.peer, Phase: PhaseSend, Err: ctx.Err()}
	}
	select {
	case c.outgoing <- frame:
		return nil
	case <-ctx.Done():
		return &ConnError{Peer: c.peer, Phase: PhaseSend, Err: ctx.Err()}
	case <-c.ended:
		return c.endError(PhaseSend)
	}
}

// write sends whole frames until the connection ends: half a frame would make
// everything after it unreadable, so a write is never given up for a call.
func (c *conn) write() {
	for {
		select {
		case frame := <-c.outgoing:
			err := c.nc.SetWriteDeadline(time.Now().Add(writeLimit))
			if err == nil {
				_, err = c.nc.Write(frame)
			}
			if err != nil {
				c.end(err)
				return
			}
		case <-c.ended:
			return
		}
	}
}

// read hands out answers until the connection ends.
func (c *conn) read() {
	in := bufio.NewReaderSize(c.nc, 64<<10)
	for {
		frame, err := readFrame(in, c.maxFrame)
		if err != nil {
			c.end(err)
			return
		}
		r, err := parseResponse(frame)
		if err != nil {
			c.end(err)
			return
		}
		c.mu.Lock()
		c.answered = true
		answer := c.waiting[r.header.GetCallId()]
		delete(c.waiting, r.header.GetCallId())
		c.mu.Unlock()
		switch {
		case answer != nil:
			answer <- r // never blocks: the channel has room for the one answer
		case r.header.GetCallId() == connectionFailed:
			if e := r.header.Exception; e != nil {
				c.end(remoteError("connection", c.peer, e))
			} else {
				c.end(corruptf("a connection failure without an exception"))
			}
			return
		}
	}
}

// end makes all waiting calls fail with err. Only the first reason counts.
func (c *conn) end(err error) {
	c.mu.Lock()
	first := c.failure == nil
	if first {
		c.failure = err
		close(c.ended)
	}
	c.mu.Unlock()
	if first {
		c.nc.Close() // an error of Close changes nothing: the connection is given up
	}
}

func (c *conn) endError(phase Phase) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endErrorLocked(phase)
}

func (c *conn) endErrorLocked(phase Phase) error {
	var remote *RemoteError
	if errors.As(c.failure, &remote) {
		return c.failure // the server said why
	}
	bare := !c.answered && (errors.Is(c.failure, io.EOF) || isReset(c.failure))
	return &ConnError{Peer: c.peer, Phase: phase, Bare: bare, Err: c.failure}
}

// alive reports whether new calls can be sent.
func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure == nil
}

// close ends the connection and waits for its goroutines.
func (c *conn) close() {
	c.end(errClosed)
	c.work.Wait()
}
