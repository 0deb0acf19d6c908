package rpc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// TestExceptionClasses holds every class to its kind, and to whether the call
// is sent again. The flag says what real servers send with it.
func TestExceptionClasses(t *testing.T) {
	const again = true
	for _, x := range []struct {
		class, text string
		flag        bool // do not retry
		kind        hbackup.Kind
		again       bool
	}{
		{"PleaseHoldException", "Master is initializing", false, hbackup.KindUnavailable, again},
		{"ipc.ServerNotRunningYetException", "Server is not running yet", false, hbackup.KindUnavailable, again},
		{"CallQueueTooBigException", "Call queue is full", false, hbackup.KindThrottled, again},
		{"quotas.RpcThrottlingException", "wait", false, hbackup.KindThrottled, again},
		{"java.io.IOException", "java.util.concurrent.RejectedExecutionException: Task x rejected from y[Terminated]", false, hbackup.KindUnavailable, again},
		{"NotServingRegionException", "x is not online", false, hbackup.KindUnavailable, again},
		{"exceptions.RegionMovedException", "moved", false, hbackup.KindUnavailable, again},
		{"exceptions.RegionOpeningException", "opening", false, hbackup.KindUnavailable, again},
		{"regionserver.RegionServerStoppedException", "stopping", false, hbackup.KindUnavailable, again},

		{"TableNotFoundException", "t", true, hbackup.KindNotFound, false},
		{"TableExistsException", "t", true, hbackup.KindExists, false},
		{"NamespaceNotFoundException", "n", true, hbackup.KindNotFound, false},
		{"NamespaceExistException", "n", true, hbackup.KindExists, false},
		{"TableNotDisabledException", "t", true, hbackup.KindConflict, false},
		{"security.AccessDeniedException", "Insufficient permissions", true, hbackup.KindDenied, false},
		{"snapshot.SnapshotExistsException", "s", true, hbackup.KindExists, false},
		{"snapshot.SnapshotDoesNotExistException", "s", true, hbackup.KindNotFound, false},
		{"snapshot.SnapshotCreationException", "Rejected taking s because we are already running another snapshot on the same table", true, hbackup.KindBusy, false},
		{"snapshot.SnapshotCreationException", "Table 't' doesn't exist, can't take snapshot.", true, hbackup.KindNotFound, false},
		{"snapshot.SnapshotCreationException", "something else", true, hbackup.KindOther, false},
		{"DoNotRetryIOException", "java.lang.UnsupportedOperationException: NoSuch", true, hbackup.KindUnsupported, false},
		{"DoNotRetryIOException", "Sanity", true, hbackup.KindOther, false},
		// Not flagged, and yet for ever.
		{"java.io.IOException", "Unclosed group near index 1", false, hbackup.KindOther, false},
		{"java.io.IOException", "Table 't' must be disabled", false, hbackup.KindConflict, false},
		{"java.lang.NullPointerException", "", false, hbackup.KindOther, false},
		{"NobodyKnowsThisException", "x", false, hbackup.KindOther, false},
	} {
		t.Run(x.class+" "+x.text, func(t *testing.T) {
			noLeaks(t)
			var calls atomic.Int32
			f := newMaster(t, func(c *fakeCall) {
				calls.Add(1)
				c.fail(x.class, x.text, x.flag)
			})
			c := connect(t, func(cfg *Config) { cfg.RetryFor = 30 * time.Millisecond }, f)
			_, err := c.IsMasterRunning(t.Context())
			wantKind(t, err, x.kind)
			if got := calls.Load() > 1; got != x.again {
				t.Fatalf("sent %d times", calls.Load())
			}
			var remote *RemoteError
			if !errors.As(err, &remote) || remote.DoNotRetry != x.flag || remote.Server != f.addr || remote.Message != x.text {
				t.Fatalf("%#v", remote)
			}
		})
	}
}

func TestWaitsForStartingMaster(t *testing.T) {
	noLeaks(t)
	var calls atomic.Int32
	f := newMaster(t, func(c *fakeCall) {
		switch calls.Add(1) {
		case 1, 2:
			c.fail("ipc.ServerNotRunningYetException", "not yet", false)
		case 3, 4:
			c.fail("PleaseHoldException", "hold", false)
		default:
			running(c)
		}
	})
	c := connect(t, nil, f)
	if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if n := calls.Load(); n != 5 {
		t.Fatalf("%d calls", n)
	}
	calls.Store(0)
	wantKind(t, c.Ready(t.Context()), hbackup.KindUnavailable) // one attempt only
	if n := calls.Load(); n != 1 {
		t.Fatalf("%d calls", n)
	}
}

// A call whose context ends while it waits for a master says what it waited for.
func TestGivesUpWithReason(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, func(c *fakeCall) { c.fail("PleaseHoldException", "hold", false) })
	c := connect(t, nil, f)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := c.IsMasterRunning(ctx)
	wantKind(t, err, hbackup.KindTimeout)
}

// Two masters: calls move from the one that ends to the one that takes over.
func TestFailover(t *testing.T) {
	noLeaks(t)
	var active atomic.Pointer[fakeServer]
	answers := func(c *fakeCall) {
		if active.Load() != c.fakeServer {
			c.fail("ipc.ServerNotRunningYetException", "Server is not running yet", false)
			return
		}
		running(c)
	}
	name := func() *hbpb.ServerName {
		if f := active.Load(); f != nil {
			return f.name()
		}
		return nil
	}
	a, b := newFake(t), newFake(t)
	for _, f := range []*fakeServer{a, b} {
		f.on(ClientMetaService, registryOf(name, name))
		f.on(MasterService, answers)
	}
	active.Store(a)
	c := connect(t, nil, a, b)
	ask := func() {
		t.Helper()
		if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	ask()
	active.Store(b) // a becomes a standby
	ask()
	if b.connections(MasterService) != 1 {
		t.Fatal("the new master was not asked")
	}
	active.Store(a)
	ask()

	// a dies while calls run: the registry goes on naming it for a while, then
	// nobody, then b.
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
					t.Error(ok, err)
					return
				}
			}
		})
	}
	a.stop()
	active.Store(nil)
	active.Store(b)
	all.Wait()
	ask()
}

// Nobody is master: bounded, and said so.
func TestNoActiveMaster(t *testing.T) {
	noLeaks(t)
	f := newFake(t)
	nobody := func() *hbpb.ServerName { return nil }
	f.on(ClientMetaService, registryOf(nobody, nobody))
	c := connect(t, func(cfg *Config) { cfg.RetryFor = 30 * time.Millisecond }, f)
	_, err := c.IsMasterRunning(t.Context())
	wantKind(t, err, hbackup.KindUnavailable)
	if !errors.Is(err, errNoMaster) {
		t.Fatal(err)
	}
	_, err = c.Regions(t.Context(), hbackup.TableName{Namespace: "default", Qualifier: "t"})
	wantKind(t, err, hbackup.KindUnavailable)
	if !errors.Is(err, errNoMeta) {
		t.Fatal(err)
	}
}

// The registry names an address where nobody listens any more.
func TestStaleAddress(t *testing.T) {
	noLeaks(t)
	dead := newFake(t)
	dead.stop()
	var calls atomic.Int32
	f := newFake(t)
	f.on(MasterService, running)
	f.on(ClientMetaService, registryOf(func() *hbpb.ServerName {
		if calls.Add(1) <= 3 {
			return dead.name()
		}
		return f.name()
	}, f.name))
	c := connect(t, nil, f)
	if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

// A lost answer: calls with a nonce are sent again with the same one; calls
// whose second answer would mislead are not.
func TestLostAnswers(t *testing.T) {
	noLeaks(t)
	var mu sync.Mutex
	nonces := map[uint64]int{}
	switches := 0
	lose := true
	f := newMaster(t, func(c *fakeCall) {
		mu.Lock()
		defer mu.Unlock()
		switch c.method {
		case "EnableTable":
			var req hbpb.EnableTableRequest
			c.read(&req)
			if nonces[req.GetNonce()]++; lose {
				lose = false
				c.hang()
				return
			}
			c.reply(&hbpb.EnableTableResponse{ProcId: proto.Uint64(7)})
		case "getProcedureResult":
			c.reply(&hbpb.GetProcedureResultResponse{State: hbpb.GetProcedureResultResponse_FINISHED.Enum()})
		case "SetSplitOrMergeEnabled":
			switches++
			c.hang()
		}
	})
	c := connect(t, nil, f)
	if err := c.EnableTable(t.Context(), hbackup.TableName{Namespace: "default", Qualifier: "t"}, Nonce{}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if len(nonces) != 1 {
		t.Fatalf("nonces %v", nonces)
	}
	for nonce, n := range nonces {
		if nonce == 0 || n != 2 {
			t.Fatalf("nonces %v", nonces)
		}
	}
	mu.Unlock()
	_, err := c.SetRegionSwitch(t.Context(), SwitchSplit, false)
	wantKind(t, err, hbackup.KindTimeout)
	mu.Lock()
	defer mu.Unlock()
	if switches != 1 || hbackup.HintOf(err) == "" {
		t.Fatalf("sent %d times, hint %q", switches, hbackup.HintOf(err))
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{10 * time.Millisecond, time.Second}
	for n := range 100 {
		want := time.Second
		if n < 7 {
			want = 10 * time.Millisecond << n
		}
		if got := b.pause(n); got < want/2 || got > want {
			t.Fatalf("pause %d: %s", n, got)
		}
	}
}
