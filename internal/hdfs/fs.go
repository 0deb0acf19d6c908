package hdfs

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/internal/hadoop"
)

// Config says how to reach an HDFS. Zero values mean the defaults given.
type Config struct {
	// Authority is what stands in URIs behind "hdfs://": "host:8020", or the
	// logical name of a pair of name nodes. Default: the first name node.
	Authority string
	// NameNodes are the RPC addresses host:port, one, or all of an HA group.
	NameNodes []string
	// User acts on the name node when Kerberos is nil. Default: $HADOOP_USER_NAME,
	// then the user of this process.
	User string
	// UseDataNodeHostname reaches data nodes by name instead of address
	// (dfs.client.use.datanode.hostname).
	UseDataNodeHostname bool

	// Kerberos holds the credentials on a secure cluster; Principal is the name
	// node's, "nn/_HOST". DataTransferProtection is dfs.data.transfer.protection;
	// on a secure cluster the default is "authentication", because without any
	// the data nodes refuse the connection after the file was created.
	Kerberos               *krb.Client
	Principal              string
	DataTransferProtection string

	// Dial replaces the plain TCP dialer, for name nodes and data nodes.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Observe is told of every request before it leaves, by the name of the name
	// node's method, or WriteBlock and ReadBlock for those to data nodes. The request
	// waits for it. The renewal of leases, once a second, is left out.
	Observe func(request string)

	// CallTimeout bounds one name node call (default 60 s), DataTimeout one wait
	// for a data node (default 60 s), DialTimeout one connection (default 10 s).
	CallTimeout, DataTimeout, DialTimeout time.Duration
	// RetryFor, StartFor and Log are about name nodes that cannot answer; see
	// hadoop.Patience.
	RetryFor, StartFor time.Duration
	Log                *slog.Logger
	// FileMode and DirMode are the rights of what is made (default 0644 and 0755).
	FileMode, DirMode os.FileMode
	// Replication and BlockSize are those of new files (default: as the name node says).
	Replication int
	BlockSize   int64
	// IdleClients is how many connections are kept for the next call (default 16).
	IdleClients int
}

// Requests to data nodes, as Observe is told of them.
const (
	WriteBlock = "writeBlock"
	ReadBlock  = "readBlock"
)

func (c Config) withDefaults() (Config, error) {
	if len(c.NameNodes) == 0 {
		return c, hbackup.Errorf("configure HDFS", "hdfs://"+c.Authority, hbackup.KindUsage, "no name node address is given")
	}
	c.NameNodes = slices.Clone(c.NameNodes)
	for i, a := range c.NameNodes {
		if _, _, err := net.SplitHostPort(a); err != nil {
			if strings.Contains(a, ":") && !strings.HasPrefix(a, "[") {
				return c, hbackup.Errorf("configure HDFS", "hdfs://"+c.Authority, hbackup.KindUsage, "name node address %q: %v", a, err)
			}
			c.NameNodes[i] = net.JoinHostPort(strings.Trim(a, "[]"), defaultNameNodePort)
		}
	}
	if c.Authority == "" {
		c.Authority = c.NameNodes[0]
	}
	if c.User == "" {
		c.User = os.Getenv("HADOOP_USER_NAME")
	}
	if c.User == "" && c.Kerberos == nil {
		u, err := user.Current()
		if err != nil {
			return c, hbackup.E("find the user's name", "hdfs://"+c.Authority, hbackup.KindUsage, err)
		}
		c.User = u.Username
	}
	if c.Kerberos != nil && c.DataTransferProtection == "" {
		c.DataTransferProtection = lib.DataTransferProtectionAuthentication
	}
	orDefault(&c.CallTimeout, 60*time.Second)
	orDefault(&c.DataTimeout, 60*time.Second)
	orDefault(&c.DialTimeout, 10*time.Second)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if c.Observe == nil {
		c.Observe = func(string) {}
	}
	if c.FileMode == 0 {
		c.FileMode = 0o644
	}
	if c.DirMode == 0 {
		c.DirMode = 0o755
	}
	if c.IdleClients <= 0 {
		c.IdleClients = 16
	}
	return c, nil
}

func orDefault(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

const defaultNameNodePort = "8020"

// FS is the file system of an HDFS. Errors carry an hbackup.Kind and the fully
// qualified path; a missing file is KindNotFound and nothing else is. All methods
// may be called from many goroutines at once. The context given to Open or Create
// rules the reader or writer until its end; each has one user at a time.
//
// The client library answers one name
// node call at a time, has no contexts, and keeps state that must not be used
// by two goroutines; so every call, reader and writer has a session of its own
// from a pool. See session.
type FS struct {
	cfg Config

	shared

	mu     sync.Mutex
	closed bool
	idle   []*session // the last released is the first to be used
	sweep  *time.Timer
}

// New gives the file system without asking anybody.
func New(cfg Config) (*FS, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &FS{cfg: cfg}
	h.waiter = hadoop.Patience{RetryFor: cfg.RetryFor, StartFor: cfg.StartFor, Log: cfg.Log}.NewWaiter(h.URI())
	return h, nil
}

// Connect is New that asks the name node for its defaults once, so that a wrong
// address or credentials are found here.
func Connect(ctx context.Context, cfg Config) (*FS, error) {
	h, err := New(cfg)
	if err != nil {
		return nil, err
	}
	err = h.call(ctx, "connect to", "", repeatable, func(s *session) error {
		_, err := s.client.ServerDefaults()
		return err
	})
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// URI gives the file system without a path: "hdfs://host:8020".
func (h *FS) URI() string { return "hdfs://" + h.cfg.Authority }

// Sealed reports whether an answer of the name node came sealed by SASL
// (hadoop.rpc.protection beyond authentication): then Open refuses every file.
func (h *FS) Sealed() bool { return h.sealed.Load() }

// Close ends the idle connections. Readers and writers that are still open stay
// usable; their connections end with them.
func (h *FS) Close() error {
	h.mu.Lock()
	h.closed = true
	idle := h.idle
	h.idle = nil
	if h.sweep != nil {
		h.sweep.Stop()
	}
	h.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	return nil
}

// acquire gives a session for the caller's sole use until release.
func (h *FS) acquire(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	var s *session
	var stale []*session
	for n := len(h.idle); n > 0 && s == nil; n = len(h.idle) {
		last := h.idle[n-1]
		h.idle = h.idle[:n-1]
		if last.healthy() {
			s = last
		} else {
			stale = append(stale, last)
		}
	}
	h.mu.Unlock()
	for _, x := range stale {
		x.close()
	}
	if s != nil {
		s.bind(ctx)
		return s, nil
	}
	return newSession(ctx, &h.cfg, &h.shared)
}

// idleFor is how long an unused connection is kept. Each costs the name node
// one call a second (the library renews leases whether it has any or not).
const idleFor = 15 * time.Second

func (h *FS) release(s *session) {
	s.unbind()
	h.mu.Lock()
	if h.closed || len(h.idle) >= h.cfg.IdleClients || !s.healthy() {
		h.mu.Unlock()
		s.close()
		return
	}
	s.idleSince = time.Now()
	h.idle = append(h.idle, s)
	if h.sweep == nil {
		h.sweep = time.AfterFunc(idleFor, h.dropIdle)
	}
	h.mu.Unlock()
}

func (h *FS) dropIdle() {
	h.mu.Lock()
	n := 0
	for n < len(h.idle) && time.Since(h.idle[n].idleSince) >= idleFor {
		n++
	}
	stale := slices.Clone(h.idle[:n])
	h.idle = slices.Delete(h.idle, 0, n)
	h.sweep = nil
	if len(h.idle) > 0 && !h.closed {
		h.sweep = time.AfterFunc(idleFor, h.dropIdle)
	}
	h.mu.Unlock()
	for _, s := range stale {
		s.close()
	}
}

// repetition says what may be done when it is unknown whether a call was
// carried out: the answer was lost.
type repetition bool

const (
	repeatable repetition = true
	once       repetition = false
)

// call runs f with a session, again and again while no name node can answer.
func (h *FS) call(ctx context.Context, op, path string, rep repetition, f func(*session) error) error {
	s, err := h.callKeep(ctx, op, path, rep, f)
	if s != nil {
		h.release(s)
	}
	return err
}

// callKeep is call for those that go on using the session; it is nil on error.
func (h *FS) callKeep(ctx context.Context, op, path string, rep repetition, f func(*session) error) (*session, error) {
	for wait := h.waiter.Begin(); ; {
		s, err := h.acquire(ctx)
		unknown := false
		if err == nil {
			if err = s.do(f); err == nil {
				h.waiter.Served()
				return s, nil
			}
			unknown = s.outcomeUnknown()
		}
		typed := h.explain(ctx, op, path, s, err)
		if s != nil {
			h.release(s)
		}
		if unknown && rep == once {
			return nil, hbackup.E(typed.Op, typed.Path, typed.Kind, fmt.Errorf("%w: %w", files.ErrAnswerLost, typed.Err)).
				WithHint("it may have been done: look before trying again")
		}
		if !hbackup.Retryable(typed) {
			return nil, typed
		}
		if !wait.Again(ctx, typed) {
			if ctx.Err() != nil {
				return nil, h.explain(ctx, op, path, nil, context.Cause(ctx))
			}
			return nil, typed
		}
	}
}

func (h *FS) uri(path string) string { return h.URI() + path }

// check is what every call asks first.
func (h *FS) check(ctx context.Context, op, path string) error {
	if err := files.CheckPath(op, h.uri(path), path); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return h.explain(ctx, op, path, nil, context.Cause(ctx))
	}
	return nil
}

// do calls f; a panic of the library (it trusts lengths that come from the wire)
// becomes an error and the session is not used again.
func (s *session) do(f func(*session) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the HDFS client library failed: %v", p)
			s.kill(err)
		}
	}()
	return f(s)
}
