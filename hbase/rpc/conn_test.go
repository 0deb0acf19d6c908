package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

func running(c *fakeCall) {
	c.reply(&hbpb.IsMasterRunningResponse{IsMasterRunning: proto.Bool(true)})
}

func TestCallsShareOneConnection(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, running)
	c := connect(t, nil, f)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 20 {
				if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
					t.Error(ok, err)
				}
			}
		})
	}
	all.Wait()
	if n := f.connections(MasterService); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

// Answers come in the opposite order of the calls.
func TestAnswersOutOfOrder(t *testing.T) {
	noLeaks(t)
	const n = 20
	var mu sync.Mutex
	var waiting []*fakeCall
	f := newMaster(t, func(c *fakeCall) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, c); len(waiting) < n {
			return
		}
		for i := n - 1; i >= 0; i-- {
			var req hbpb.GetTableNamesRequest
			waiting[i].read(&req)
			waiting[i].reply(&hbpb.GetTableNamesResponse{TableNames: []*hbpb.TableName{{Namespace: []byte("default"), Qualifier: []byte(req.GetRegex())}}})
		}
	})
	c := connect(t, nil, f)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			want := fmt.Sprint("t", i)
			got, err := c.TableNames(t.Context(), TableFilter{Regexp: want})
			if err != nil || len(got) != 1 || got[0].Qualifier != want {
				t.Errorf("%s: %v, %v", want, got, err)
			}
		})
	}
	all.Wait()
}

// A call that is not answered ends by its own timer; its late answer is
// dropped, and the connection goes on.
func TestLateAnswer(t *testing.T) {
	noLeaks(t)
	late := make(chan *fakeCall, 1)
	f := newMaster(t, func(c *fakeCall) {
		if c.method == "GetCompletedSnapshots" {
			late <- c
			return
		}
		running(c)
	})
	c := connect(t, nil, f)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Snapshots(ctx)
	wantKind(t, err, hbackup.KindTimeout)
	held := <-late
	conn, err := c.pool.get(t.Context(), Peer{f.addr, MasterService})
	if err != nil || len(conn.waiting) != 0 {
		t.Fatalf("%v, %d calls still wait", err, len(conn.waiting))
	}
	if ms := held.header.GetTimeout(); ms == 0 || ms > 50 {
		t.Fatalf("the server was told a timeout of %d ms", ms)
	}
	held.reply(&hbpb.GetCompletedSnapshotsResponse{})
	for range 3 {
		if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if n := f.connections(MasterService); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

// Answers that come twice, or to calls that nobody made, disturb nothing.
func TestUnwantedAnswers(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, func(c *fakeCall) {
		for range 5 {
			running(c)
		}
		stray := *c
		stray.header = &hbpb.RequestHeader{CallId: proto.Uint32(12345)}
		running(&stray)
	})
	c := connect(t, nil, f)
	for range 20 {
		if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
}

// The limit of one call is not the caller's: the call is sent again on the
// same connection.
func TestCallTimeoutIsRepeated(t *testing.T) {
	noLeaks(t)
	first := make(chan struct{}, 1)
	first <- struct{}{}
	f := newMaster(t, func(c *fakeCall) {
		select {
		case <-first: // never answered
		default:
			running(c)
		}
	})
	c := connect(t, func(cfg *Config) { cfg.CallTimeout = 50 * time.Millisecond }, f)
	if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if n := f.connections(MasterService); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

func TestCancelledCall(t *testing.T) {
	noLeaks(t)
	got := make(chan struct{})
	f := newMaster(t, func(*fakeCall) { close(got) })
	c := connect(t, nil, f)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	_, err := c.IsMasterRunning(ctx)
	wantKind(t, err, hbackup.KindInterrupted)
}

func TestCloseEndsCalls(t *testing.T) {
	noLeaks(t)
	got := make(chan struct{})
	f := newMaster(t, func(*fakeCall) { close(got) })
	c := connect(t, nil, f)
	go func() { <-got; c.Close() }()
	_, err := c.IsMasterRunning(t.Context())
	wantKind(t, err, hbackup.KindInterrupted)
	_, err = c.IsMasterRunning(t.Context())
	wantKind(t, err, hbackup.KindInterrupted)
}

// A service that the server does not have is closed without a word. That looks
// like a network error; it is tried a few times, not for ever.
func TestBareClose(t *testing.T) {
	noLeaks(t)
	f := newFake(t)
	f.on(ClientMetaService, registryOf(f.name, f.name)) // but no MasterService
	c := connect(t, func(cfg *Config) { cfg.RetryFor = time.Hour }, f)
	_, err := c.IsMasterRunning(t.Context())
	wantKind(t, err, hbackup.KindUnavailable)
	var lost *ConnError
	if !errors.As(err, &lost) || !lost.Bare || hbackup.HintOf(err) == "" {
		t.Fatalf("%#v, hint %q", err, hbackup.HintOf(err))
	}
	if n := f.connections(MasterService); n != maxBareCloses {
		t.Fatalf("%d connections", n)
	}
}

// Call id -1 is about the connection: every waiting call fails with the reason.
func TestConnectionFailure(t *testing.T) {
	noLeaks(t)
	const n = 5
	var mu sync.Mutex
	var seen int
	f := newMaster(t, func(c *fakeCall) {
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n {
			c.failAs(connectionFailed, "security.AccessDeniedException", "Authentication is required", true)
		}
	})
	c := connect(t, nil, f)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, err := c.IsMasterRunning(t.Context())
			var remote *RemoteError
			if hbackup.KindOf(err) != hbackup.KindDenied || !errors.As(err, &remote) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if seen != n {
		t.Fatalf("%d calls", seen)
	}
}

// Bytes that are no answer end the connection and the call, never the process.
func TestMalformedAnswers(t *testing.T) {
	noLeaks(t)
	id := func(c *fakeCall) []byte {
		b, _ := appendDelimited(nil, &hbpb.ResponseHeader{CallId: c.header.CallId})
		return b
	}
	cases := map[string]func(*fakeCall){
		"no header":           func(c *fakeCall) { c.bytes([]byte{0xFF}) },
		"header too long":     func(c *fakeCall) { c.bytes([]byte{100, 1}) },
		"no call id":          func(c *fakeCall) { c.bytes([]byte{0}) },
		"empty frame":         func(c *fakeCall) { c.conn.Write([]byte{0, 0, 0, 0}) },
		"negative length":     func(c *fakeCall) { c.conn.Write([]byte{0xFF, 0xFF, 0xFF, 0xFF, 1}) },
		"huge length":         func(c *fakeCall) { c.conn.Write([]byte{0x7F, 0, 0, 0, 1}) },
		"result too long":     func(c *fakeCall) { c.bytes(append(id(c), 100)) },
		"cells unannounced":   func(c *fakeCall) { c.bytes(append(id(c), 0, 1, 2, 3)) },
		"required is missing": func(c *fakeCall) { c.bytes(append(id(c), 0)) },
		"not the message":     func(c *fakeCall) { c.bytes(append(id(c), 2, 0xFF, 0xFF)) },
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			f := newMaster(t, func(c *fakeCall) { answer(c) })
			c := connect(t, func(cfg *Config) { cfg.RetryFor = 50 * time.Millisecond }, f)
			_, err := c.IsMasterRunning(t.Context())
			wantKind(t, err, hbackup.KindCorrupt)
		})
	}
	t.Run("cut off inside a frame", func(t *testing.T) {
		f := newMaster(t, func(c *fakeCall) {
			c.conn.Write([]byte{0, 0, 0, 9, 1, 2})
			c.hang()
		})
		c := connect(t, func(cfg *Config) { cfg.RetryFor = 50 * time.Millisecond }, f)
		_, err := c.IsMasterRunning(t.Context())
		wantKind(t, err, hbackup.KindUnavailable)
	})
}

// A server that drops a large request while it is being written.
func TestResetWhileWriting(t *testing.T) {
	noLeaks(t)
	f := newFake(t)
	f.on(ClientMetaService, registryOf(f.name, f.name))
	c := connect(t, nil, f)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		nc, err := ln.Accept()
		if err == nil {
			io.ReadFull(nc, make([]byte, 1<<20))
			nc.Close()
		}
	}()
	conn, err := c.pool.get(t.Context(), Peer{ln.Addr().String(), ClientService})
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.call(t.Context(), "Multi", &hbpb.MultiRequest{}, &hbpb.MultiResponse{}, make([]byte, 64<<20))
	var lost *ConnError
	if !errors.As(err, &lost) || lost.kind() != hbackup.KindUnavailable || !lost.sent() {
		t.Fatalf("%v", err)
	}
}

func TestTooLargeRequestIsNotSent(t *testing.T) {
	f := newMaster(t, running)
	c := connect(t, nil, f)
	conn, err := c.pool.get(t.Context(), Peer{f.addr, MasterService})
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.call(t.Context(), "IsMasterRunning", &hbpb.IsMasterRunningRequest{}, &hbpb.IsMasterRunningResponse{}, make([]byte, maxRequest))
	var lost *ConnError
	if !errors.As(err, &lost) || lost.Phase != PhaseEncode || retryOf(err, true) != retryNever {
		t.Fatalf("%v", err)
	}
	if _, err := c.IsMasterRunning(t.Context()); err != nil {
		t.Fatalf("the connection is broken by it: %v", err)
	}
}

// stubborn never finishes its handshake.
type stubborn struct{ Simple }

func (stubborn) Authenticate(_ context.Context, nc net.Conn, _ Peer) (net.Conn, error) {
	_, err := nc.Read(make([]byte, 1))
	return nil, err
}

func TestHandshakeHonoursContext(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, running)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, Config{Bootstrap: []string{f.addr}, Auth: stubborn{}})
	wantKind(t, err, hbackup.KindTimeout)
	_, err = Dial(t.Context(), Config{Bootstrap: []string{f.addr}, Auth: stubborn{}, ConnectTimeout: 50 * time.Millisecond})
	wantKind(t, err, hbackup.KindTimeout)
}

// rude is refused by the server's side of the handshake.
type rude struct{ Simple }

func (rude) Authenticate(context.Context, net.Conn, Peer) (net.Conn, error) {
	return nil, hbackup.Errorf("authenticate", "", hbackup.KindDenied, "GSS initiate failed")
}

func TestHandshakeErrorKeepsItsKind(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, running)
	_, err := Dial(t.Context(), Config{Bootstrap: []string{f.addr}, Auth: rude{}})
	wantKind(t, err, hbackup.KindDenied)
}

func TestDialRefused(t *testing.T) {
	noLeaks(t)
	f := newFake(t)
	f.stop()
	_, err := Dial(t.Context(), Config{Bootstrap: []string{f.addr}})
	wantKind(t, err, hbackup.KindUnavailable)
	if hbackup.HintOf(err) == "" {
		t.Fatal("no hint")
	}
}

func TestConfigRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing":      {},
		"no port":      {Bootstrap: []string{"host"}},
		"joined":       {ZooKeeper: []string{"a:1,b:2"}},
		"parent":       {ZooKeeper: []string{"a"}, ZNodeParent: "hbase"},
		"parent slash": {ZooKeeper: []string{"a"}, ZNodeParent: "/hbase/"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(t.Context(), cfg)
			wantKind(t, err, hbackup.KindUsage)
		})
	}
}

// A server that stops reading: the call that is being written ends in time as
// well, and so do those behind it.
func TestServerThatDoesNotRead(t *testing.T) {
	noLeaks(t)
	f := newMaster(t, running)
	c := connect(t, nil, f)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if nc, err := ln.Accept(); err == nil {
			accepted <- nc
		}
	}()
	conn, err := c.pool.get(t.Context(), Peer{ln.Addr().String(), ClientService})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := conn.call(ctx, "Multi", &hbpb.MultiRequest{}, &hbpb.MultiResponse{}, make([]byte, 32<<20))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !conn.alive() {
		t.Error("the connection was given up")
	}
	(<-accepted).Close()
}

func BenchmarkCall(b *testing.B) {
	f := newMaster(b, running)
	c := connect(b, nil, f)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.IsMasterRunning(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
