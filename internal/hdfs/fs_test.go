package hdfs

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

func wantKind(t *testing.T, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("the error is %v (kind %q), not of kind %q", err, hbackup.KindOf(err), kind)
	}
}

func TestOpenCostsTwoCalls(t *testing.T) {
	n := startNameNode(t, oneFile(status(0, 7), located(0, false)))
	fs := connectTo(t, nil, n)
	before := n.count()
	for range 10 {
		r, info, err := fs.Open(t.Context(), "/f", 0)
		if err != nil || info.ID != 7 || info.Size != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		if b, err := io.ReadAll(r); err != nil || len(b) != 0 {
			t.Fatalf("%q, %v", b, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.count() - before; got != 20 {
		t.Errorf("10 openings cost %d calls: %v", got, n.calls)
	}
}

func TestRefusals(t *testing.T) {
	with := func(n int, v any) func([]byte) []byte {
		return func(b []byte) []byte {
			if bytes, ok := v.([]byte); ok {
				return field(b, 15, bytes)
			}
			return number(b, 18, uint64(v.(int)))
		}
	}
	for name, test := range map[string]struct {
		status, blocks []byte
		want           error
		kind           hbackup.Kind
	}{
		"open, empty":       {status(0, 1), located(0, true), ErrOpenForWriting, hbackup.KindUnsupported},
		"encrypted by flag": {status(0, 1, with(18, flagEncrypted)), located(0, false), ErrEncrypted, hbackup.KindUnsupported},
		"encrypted, old":    {status(0, 1, with(15, encryptionInfo())), located(0, false), ErrEncrypted, hbackup.KindUnsupported},
		"encrypted, blocks": {status(0, 1), located(0, false, func(b []byte) []byte { return field(b, 6, encryptionInfo()) }), ErrEncrypted, hbackup.KindUnsupported},
		"erasure-coded":     {status(0, 1, with(18, flagErasure)), located(0, false), ErrErasureCoded, hbackup.KindUnsupported},
		"grown in between":  {status(0, 1), located(5, false), files.ErrReplaced, hbackup.KindConflict},
	} {
		t.Run(name, func(t *testing.T) {
			fs := connectTo(t, nil, startNameNode(t, oneFile(test.status, test.blocks)))
			_, _, err := fs.Open(t.Context(), "/f", 0)
			wantKind(t, err, test.kind)
			if !errors.Is(err, test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// encryptionInfo makes a FileEncryptionInfoProto with its required fields.
func encryptionInfo() []byte {
	b := number(number(nil, 1, 2), 2, 2)
	for _, n := range []int{3, 4} {
		b = field(b, protowireNumber(n), []byte("x"))
	}
	return field(field(b, 5, []byte("k")), 6, []byte("v"))
}

// A call to a name node that does not answer ends with its time limit or its
// context, and the next call is not disturbed by the answer that comes late.
func TestHungNameNode(t *testing.T) {
	var hang atomic.Bool
	answer := oneFile(status(5, 7), nil)
	n := startNameNode(t, func(m string, r []byte) fakeAnswer {
		if hang.Load() && m != renewLease {
			return fakeAnswer{hang: true}
		}
		return answer(m, r)
	})
	fs := connectTo(t, func(c *Config) { c.CallTimeout = 200 * time.Millisecond; c.RetryFor = -1 }, n)
	hang.Store(true)
	_, err := fs.Stat(t.Context(), "/f")
	wantKind(t, err, hbackup.KindTimeout)
	if hbackup.HintOf(err) == "" {
		t.Error("no hint")
	}
	hang.Store(false)
	if info, err := fs.Stat(t.Context(), "/f"); err != nil || info.Size != 5 {
		t.Fatalf("afterwards: %+v, %v", info, err)
	}

	hang.Store(true)
	patient := sameWithLimit(t, fs, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	before := n.count("getFileInfo")
	done := make(chan error, 1)
	go func() { _, err := patient.Stat(ctx, "/f"); done <- err }()
	for n.count("getFileInfo") == before {
		time.Sleep(time.Millisecond)
	}
	cancel()
	wantKind(t, <-done, hbackup.KindInterrupted)
}

// sameWithLimit gives the same file system with another time limit for calls.
func sameWithLimit(t *testing.T, fs *FS, limit time.Duration) *FS {
	cfg := fs.cfg
	cfg.CallTimeout = limit
	other, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return other
}

// The standby is passed over, wherever it stands in the list, and a fail-over in
// between costs no error.
func TestStandby(t *testing.T) {
	var active atomic.Int32
	answer := oneFile(status(5, 7), nil)
	node := func(i int32) *fakeNameNode {
		return startNameNode(t, func(m string, r []byte) fakeAnswer {
			if active.Load() != i {
				return fakeAnswer{exception: "org.apache.hadoop.ipc.StandbyException", message: "Operation category READ is not supported in state standby"}
			}
			return answer(m, r)
		})
	}
	first, second := node(0), node(1)
	fs := connectTo(t, nil, first, second)
	for i := range int32(4) {
		active.Store(i % 2)
		if info, err := fs.Stat(t.Context(), "/f"); err != nil || info.Size != 5 {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	// New connections go to the active one at once.
	before := first.count()
	for range 3 {
		fs.dropAll()
		if _, err := fs.Stat(t.Context(), "/f"); err != nil {
			t.Fatal(err)
		}
	}
	if got := first.count() - before; got != 0 {
		t.Errorf("the standby was asked %d times", got)
	}
	active.Store(7)
	fs.waiter.RetryFor = 500 * time.Millisecond
	_, err := fs.Stat(t.Context(), "/f")
	wantKind(t, err, hbackup.KindUnavailable)
}

// dropAll closes the idle connections.
func (h *FS) dropAll() {
	h.mu.Lock()
	idle := h.idle
	h.idle = nil
	h.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
}

// Safe mode is waited for.
func TestSafeMode(t *testing.T) {
	var refusals atomic.Int32
	refusals.Store(3)
	answer := oneFile(status(5, 7), nil)
	n := startNameNode(t, func(m string, r []byte) fakeAnswer {
		if m == "getFileInfo" && refusals.Add(-1) >= 0 {
			return fakeAnswer{exception: "org.apache.hadoop.ipc.RetriableException", message: "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Name node is in safe mode.\n\tat x"}
		}
		return answer(m, r)
	})
	fs := connectTo(t, nil, n)
	if _, err := fs.Stat(t.Context(), "/f"); err != nil {
		t.Fatal(err)
	}
	refusals.Store(1000)
	fs.waiter.RetryFor = 300 * time.Millisecond
	_, err := fs.Stat(t.Context(), "/f")
	wantKind(t, err, hbackup.KindUnavailable)
	if !strings.Contains(hbackup.HintOf(err), "safe mode") || strings.Contains(err.Error(), "\tat") {
		t.Errorf("%v; hint %q", err, hbackup.HintOf(err))
	}
}

// A create whose answer is lost is not sent twice.
func TestLostAnswer(t *testing.T) {
	answer := oneFile(status(5, 7), nil)
	n := startNameNode(t, func(m string, r []byte) fakeAnswer {
		if m == "create" {
			return fakeAnswer{hangUp: true}
		}
		return answer(m, r)
	})
	fs := connectTo(t, nil, n)
	_, err := fs.Create(t.Context(), "/new")
	wantKind(t, err, hbackup.KindUnavailable)
	if n.count("create") != 1 || n.count("delete") != 0 {
		t.Errorf("%v", n.calls)
	}
	if !strings.Contains(hbackup.HintOf(err), "look before") {
		t.Errorf("hint %q", hbackup.HintOf(err))
	}
}

// Answers that are no answers are errors, not crashes or huge allocations.
func TestBadAnswers(t *testing.T) {
	for name, raw := range map[string][]byte{
		"huge":    {0xff, 0xff, 0xff, 0xff, 1, 2},
		"empty":   {0, 0, 0, 0},
		"garbage": {0, 0, 0, 5, 9, 9, 9, 9, 9},
		"http":    []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			n := startNameNode(t, func(string, []byte) fakeAnswer { return fakeAnswer{raw: raw} })
			_, err := Connect(t.Context(), Config{NameNodes: []string{n.addr()}, User: "u", RetryFor: -1, CallTimeout: time.Second})
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), n.addr()) {
				t.Errorf("the error names no name node: %v", err)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	n := startNameNode(t, nil)
	n.stop()
	_, err := Connect(t.Context(), Config{NameNodes: []string{n.addr()}, User: "u", RetryFor: -1})
	wantKind(t, err, hbackup.KindUnavailable)
	if hbackup.HintOf(err) == "" {
		t.Error("no hint")
	}
}

// A name node that was never heard of is given up after StartFor, though RetryFor is
// long; one that was heard of, if only as a standby, is waited for.
func TestNeverHeardOf(t *testing.T) {
	down := startNameNode(t, nil)
	down.stop()
	cfg := Config{NameNodes: []string{down.addr()}, User: "u", RetryFor: time.Hour, StartFor: 200 * time.Millisecond}
	_, err := Connect(t.Context(), cfg)
	wantKind(t, err, hbackup.KindUnavailable)

	var refusals atomic.Int32
	refusals.Store(5) // more than StartFor's worth
	answer := oneFile(status(5, 7), nil)
	standby := startNameNode(t, func(m string, r []byte) fakeAnswer {
		if refusals.Add(-1) >= 0 {
			return fakeAnswer{exception: "org.apache.hadoop.ipc.StandbyException", message: "Operation category READ is not supported in state standby"}
		}
		return answer(m, r)
	})
	cfg.NameNodes = []string{down.addr(), standby.addr()}
	fs, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	fs.Close()
}

// Connections are used again, and those of a closed file system end.
func TestPool(t *testing.T) {
	n := startNameNode(t, oneFile(status(5, 7), nil))
	fs := connectTo(t, nil, n)
	for range 20 {
		if _, err := fs.Stat(t.Context(), "/f"); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.conns) != 1 || len(fs.idle) != 1 {
		t.Errorf("%d connections, %d idle", len(n.conns), len(fs.idle))
	}
	s := fs.idle[0]
	fs.Close()
	if s.healthy() || len(fs.idle) != 0 {
		t.Error("the idle connection outlived Close")
	}
}

// A context that ends while its user is giving the session back ends no other
// user's call: the watcher may come late.
func TestEndedContextHitsNobodyElse(t *testing.T) {
	fs := connectTo(t, nil, startNameNode(t, oneFile(status(5, 7), nil)))
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := fs.acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		fs.release(s)
		if _, err := fs.Stat(t.Context(), "/f"); err != nil {
			t.Fatal(err)
		}
	}
}
