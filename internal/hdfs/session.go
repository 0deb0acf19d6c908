package hdfs

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"hbackup/internal/hadoop"
)

// session is one client of the library and the connections it has made. It has
// one user at a time, whose context it obeys: when that ends, the connections
// are closed and whatever waits on them returns.
//
// The library offers no other way in: the dial functions are where deadlines,
// cancelling, the closing of connections that it forgets, and a look at the name
// node's full answers come from.
type session struct {
	cfg    *Config
	client *lib.Client
	*shared

	idleSince time.Time // guarded by the pool's lock

	mu      sync.Mutex
	ctx     context.Context
	unwatch func() bool // stops watching ctx
	dead    error       // why the session is over
	nn      *nnConn     // the current connection to a name node
	dn      map[*dnConn]struct{}
	writing bool   // connections to data nodes are those of a writer
	replace bool   // a file that is renamed may replace another
	blind   bool   // the next look at a file is answered here
	last    []byte // the block with which the file ends, since it was said
	after   string // the name after which a directory is listed
	calls   map[string]int
	holding bool         // a file is open for writing
	dials   int          // of name nodes since one has served
	refused error        // why the last of them failed, if it did
	wait    *hadoop.Wait // for one to serve, while a file is held
	answer  answer       // of the last call by the user
	file    answer       // of the last call that said something about a file's bytes
}

// shared is what all sessions of a file system know together.
type shared struct {
	waiter   *hadoop.Waiter
	answered atomic.Pointer[string] // the name node that answered last
	sealed   atomic.Bool            // an answer was sealed by SASL
}

var (
	errSessionClosed = errors.New("the connection was closed")
	errNotBound      = errors.New("the connection is idle")
)

func newSession(ctx context.Context, cfg *Config, sh *shared) (*session, error) {
	s := &session{cfg: cfg, shared: sh, dn: map[*dnConn]struct{}{}, calls: map[string]int{}}
	s.bind(ctx)
	client, err := lib.NewClient(lib.ClientOptions{
		Addresses:                    s.nameNodes(),
		User:                         cfg.User,
		UseDatanodeHostname:          cfg.UseDataNodeHostname,
		NamenodeDialFunc:             s.dialNameNode,
		DatanodeDialFunc:             s.dialDataNode,
		KerberosClient:               cfg.Kerberos,
		KerberosServicePrincipleName: cfg.Principal,
		DataTransferProtection:       cfg.DataTransferProtection,
	})
	if err != nil {
		s.unbind()
		s.kill(err)
		return nil, err
	}
	s.client = client
	return s, nil
}

// nameNodes gives the addresses, the active one first: each try of a standby
// would cost a connection and a call. See rounds for why it gives them often.
func (s *session) nameNodes() []string {
	nodes := s.cfg.NameNodes
	if active := s.answered.Load(); active != nil {
		nodes = []string{*active}
		for _, a := range s.cfg.NameNodes {
			if a != *active {
				nodes = append(nodes, a)
			}
		}
	}
	return slices.Repeat(nodes, rounds)
}

// bind gives the session to a user whose context rules it.
func (s *session) bind(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	s.answer, s.file = answer{}, answer{}
	s.writing, s.replace, s.blind, s.last, s.after = false, false, false, nil, ""
	s.holding, s.dials, s.refused, s.wait = false, 0, nil, nil
	s.mu.Unlock()
	unwatch := context.AfterFunc(ctx, func() { s.kill(context.Cause(ctx)) })
	s.mu.Lock()
	s.unwatch = unwatch
	s.mu.Unlock()
}

// unbind ends the user's hold and closes what is left of its data connections. A
// session whose context has ended is over: the watcher may be on its way, and
// would hit the next user.
func (s *session) unbind() {
	s.mu.Lock()
	ctx, unwatch := s.ctx, s.unwatch
	s.ctx, s.unwatch = nil, nil
	left := s.dn
	s.dn = map[*dnConn]struct{}{}
	s.mu.Unlock()
	if unwatch != nil && !unwatch() {
		s.kill(context.Cause(ctx))
	}
	for c := range left {
		c.fail(errSessionClosed)
	}
}

func (s *session) healthy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead == nil && s.nn != nil && s.nn.failure() == nil
}

// kill ends the session at once: everything that waits returns with the reason.
func (s *session) kill(reason error) {
	s.mu.Lock()
	if s.dead == nil {
		s.dead = reason
	}
	nn := s.nn
	left := s.dn
	s.dn = map[*dnConn]struct{}{}
	s.mu.Unlock()
	if nn != nil {
		nn.fail(reason)
	}
	for c := range left {
		c.fail(reason)
	}
}

// close ends the session and the library's goroutine that renews leases.
func (s *session) close() {
	s.kill(errSessionClosed)
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// dialContext gives the context of the user, with the time limit of a dial.
func (s *session) dialContext() (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead != nil:
		return nil, nil, s.dead
	case s.ctx == nil:
		return nil, nil, errNotBound
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.DialTimeout)
	return ctx, cancel, nil
}

func (s *session) dialNameNode(_ context.Context, network, addr string) (net.Conn, error) {
	if err := s.mayDial(); err != nil {
		return nil, err
	}
	ctx, cancel, err := s.dialContext()
	if err != nil {
		return nil, err
	}
	defer cancel()
	raw, err := s.cfg.Dial(ctx, network, addr)
	s.noteDial(err)
	if err != nil {
		return nil, err
	}
	c := &nnConn{Conn: raw, s: s, addr: addr}
	s.mu.Lock()
	dead := s.dead
	s.nn = c
	s.mu.Unlock()
	if dead != nil {
		c.fail(dead)
		return nil, dead
	}
	return c, nil
}

func (s *session) dialDataNode(_ context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel, err := s.dialContext()
	if err != nil {
		return nil, err
	}
	defer cancel()
	raw, err := s.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := &dnConn{Conn: raw, s: s, timeout: s.cfg.DataTimeout, writing: s.writing}
	dead := s.dead
	if dead == nil {
		s.dn[c] = struct{}{}
	}
	s.mu.Unlock()
	if dead != nil {
		c.fail(dead)
		return nil, dead
	}
	return c, nil
}

func (s *session) forget(c *dnConn) {
	s.mu.Lock()
	delete(s.dn, c)
	s.mu.Unlock()
}

// dataFailure gives the first failure of a connection to a data node that is
// still open, or of the session.
func (s *session) dataFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		return s.dead
	}
	for c := range s.dn {
		if err := c.failure(); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) allowReplacing(allowed bool) {
	s.mu.Lock()
	s.replace = allowed
	s.mu.Unlock()
}

func (s *session) listAfter(name string) {
	s.mu.Lock()
	s.after = name
	s.mu.Unlock()
}

// amended gives a request as it is sent: what the library has no parameter for is
// put into it.
func (s *session) amended(method string, packet []byte) ([]byte, error) {
	s.mu.Lock()
	replace, after, last := s.replace, s.after, s.last
	s.mu.Unlock()
	switch {
	case method == "rename2" && !replace:
		return withoutOverwrite(packet)
	case method == "getListing" && after != "":
		return withStart(packet, after)
	case method == complete && last != nil:
		return withLastBlock(packet, last)
	}
	return packet, nil
}

// outcomeUnknown reports that a call of the user was sent and not answered.
func (s *session) outcomeUnknown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer.sent && !s.answer.received
}

func (s *session) lastAnswer() answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer
}

// lastFileState gives the answer to the last getBlockLocations or create.
func (s *session) lastFileState() answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file
}

// verifiesData reports whether everything that came from data nodes in this
// session, and is not closed yet, was verified before the library saw it.
func (s *session) verifiesData() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.dn {
		if !c.verifying() {
			return false
		}
	}
	return true
}

// renewLease is the library's own call, once a second, in between the user's.
const renewLease = "renewLease"

func (s *session) sent(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method != renewLease {
		s.calls[method]++
		s.answer = answer{method: method, sent: true}
	}
}

func (s *session) received(a answer) {
	if a.sealed {
		s.sealed.Store(true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.method != renewLease {
		s.answer = a
		if tellsFileState(a.method) {
			s.file = a
		}
	}
}
