package hdfs

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
	"hbackup/internal/hadoop"
)

// A file that is being written lives through a fail-over: what has gone to the data
// nodes is not written again. Its session asks all name nodes in turn, for as long as
// the file system's Patience says, instead of giving up after one round, and a call
// that another name node can be asked once more is asked there.
//
// The library tries the addresses that it has one after the other, leaves out those
// that have failed within five seconds, and repeats a call after a StandbyException
// and nothing else. So it has every address many times over, the pauses are made in
// the dialling, and an answer that is lost, or says that the node cannot serve yet, is
// given to it as a StandbyException.

// rounds is how many times the library has each address: more than can be tried in
// five seconds.
const rounds = 32

// repeatedWhileWriting are the calls of a writer. The name node knows a repeated one
// by the file, the block or the client that it is about, and answers it again.
var repeatedWhileWriting = map[string]bool{"addBlock": true, "updateBlockForPipeline": true, "complete": true, renewLease: true}

var errNoActive = errors.New("no name node is active")

// hold says that a file is open for writing from here on.
func (s *session) hold() {
	s.mu.Lock()
	s.holding = true
	s.mu.Unlock()
}

// mayDial is asked before each dial of a name node. The first round is free; after it
// a session that holds a file waits and any other one has tried enough.
func (s *session) mayDial() error {
	s.mu.Lock()
	s.dials++
	ctx, why, more := s.ctx, s.refused, s.dials > len(s.cfg.NameNodes)
	if why == nil {
		why = errNoActive
	}
	if s.holding && more && s.wait == nil {
		s.wait = s.waiter.Begin()
	}
	wait, dead := s.wait, s.dead
	s.mu.Unlock()
	switch {
	case dead != nil:
		return dead
	case more && (wait == nil || ctx == nil || !wait.Again(ctx, why)):
		return why
	}
	return nil
}

// noteDial keeps why the last dial has failed; nil when it has not.
func (s *session) noteDial(err error) {
	s.mu.Lock()
	s.refused = err
	s.mu.Unlock()
}

// served says that a name node has answered as the active one does.
func (s *session) served() {
	s.mu.Lock()
	s.dials, s.wait = 0, nil
	s.mu.Unlock()
}

func (s *session) isHolding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding
}

// readWhole gives the answer to a call of a writer: the name node's own, or that it is
// a standby when it is lost or the node cannot serve.
func (c *nnConn) readWhole() ([]byte, error) {
	var f frame
	f.keepBody = true
	b := make([]byte, 4)
	_, err := io.ReadFull(c.Conn, b)
	if err == nil {
		if _, err := f.add(b); err != nil {
			return nil, c.fail(err)
		}
		rest := make([]byte, binary.BigEndian.Uint32(b))
		_, err = io.ReadFull(c.Conn, rest)
		b = append(b, rest...)
	}
	if err != nil {
		if ours := c.failure(); ours != nil {
			return nil, ours // it was we who closed it
		}
		return c.standbyAnswer(), nil
	}
	c.mu.Lock()
	method := c.method
	c.mu.Unlock()
	a := parseAnswer(method, b[4:])
	if a.exception != "" && hbackup.IsKind(hadoop.Explain("", "", a.exception, a.message), hbackup.KindUnavailable) {
		c.s.received(a)
		return c.standbyAnswer(), nil
	}
	return b, nil
}

// standbyAnswer makes the answer of a name node that is a standby, to the call under
// way. Fields are those of Hadoop's RpcHeader.proto.
func (c *nnConn) standbyAnswer() []byte {
	const statusError = 1
	c.mu.Lock()
	id := c.callID
	c.mu.Unlock()
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	header := number(number(nil, 1, uint64(uint32(id))), 2, statusError)
	header = text(text(header, 4, "org.apache.hadoop.ipc.StandbyException"), 5, "the answer was lost, or the name node is no active one")
	packet := protowire.AppendBytes(nil, header)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)
}
