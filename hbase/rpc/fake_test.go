package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// fakeServer is an HBase server of the tests: it frames as real ones do and
// lets a function answer each call, in a goroutine of its own.
type fakeServer struct {
	t    testing.TB
	ln   net.Listener
	addr string

	mu       sync.Mutex
	services map[Service]func(*fakeCall) // others are closed without a word
	conns    map[net.Conn]bool
	opened   map[Service]int
	wg       sync.WaitGroup
	calls    atomic.Int64
}

// fakeCall is one call that has arrived.
type fakeCall struct {
	*fakeServer
	conn   net.Conn
	write  *sync.Mutex
	header *hbpb.RequestHeader
	method string
	param  []byte
	cells  []byte
}

func newFake(t testing.TB) *fakeServer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{t: t, ln: ln, addr: ln.Addr().String(),
		services: map[Service]func(*fakeCall){}, conns: map[net.Conn]bool{}, opened: map[Service]int{}}
	f.wg.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

// on sets who answers the calls of a service.
func (f *fakeServer) on(s Service, answer func(*fakeCall)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.services[s] = answer
}

// stop ends the server as kill -9 does: connections break, the port refuses.
func (f *fakeServer) stop() {
	f.ln.Close()
	f.hangUp()
	f.wg.Wait()
}

// hangUp breaks all connections.
func (f *fakeServer) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

func (f *fakeServer) connections(s Service) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened[s]
}

func (f *fakeServer) name() *hbpb.ServerName {
	a := f.ln.Addr().(*net.TCPAddr)
	return &hbpb.ServerName{HostName: proto.String("127.0.0.1"), Port: proto.Uint32(uint32(a.Port)), StartCode: proto.Uint64(1)}
}

func (f *fakeServer) accept() {
	for {
		c, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[c] = true
		f.mu.Unlock()
		f.wg.Go(func() {
			defer func() {
				c.Close()
				f.mu.Lock()
				delete(f.conns, c)
				f.mu.Unlock()
			}()
			f.serve(c)
		})
	}
}

func (f *fakeServer) serve(c net.Conn) {
	var first [6]byte
	if _, err := io.ReadFull(c, first[:]); err != nil || string(first[:]) != preamble+string(rune(authSimple)) {
		return
	}
	head, err := readFrame(c, 1<<20)
	if err != nil {
		return
	}
	var h hbpb.ConnectionHeader
	if proto.Unmarshal(head, &h) != nil {
		return
	}
	service := Service(h.GetServiceName())
	f.mu.Lock()
	answer := f.services[service]
	f.opened[service]++
	f.mu.Unlock()
	if answer == nil {
		return
	}
	var write sync.Mutex
	for {
		frame, err := readFrame(c, 300<<20)
		if err != nil {
			return
		}
		call := &fakeCall{fakeServer: f, conn: c, write: &write, header: &hbpb.RequestHeader{}}
		head, rest, err := cutDelimited(frame)
		if err == nil {
			err = proto.Unmarshal(head, call.header)
		}
		if err == nil {
			call.param, call.cells, err = cutDelimited(rest)
		}
		if err != nil || !call.header.GetRequestParam() {
			f.t.Errorf("request that cannot be read: %v", err)
			return
		}
		call.method = call.header.GetMethodName()
		f.calls.Add(1)
		f.mu.Lock()
		answer := f.services[service]
		f.mu.Unlock()
		f.wg.Go(func() { answer(call) })
	}
}

// read decodes the parameter.
func (c *fakeCall) read(m proto.Message) {
	if err := proto.Unmarshal(c.param, m); err != nil {
		c.t.Errorf("%s: %v", c.method, err)
	}
}

// reply answers; with cells when there are any.
func (c *fakeCall) reply(m proto.Message, cells ...byte) {
	h := &hbpb.ResponseHeader{CallId: c.header.CallId}
	if len(cells) > 0 {
		h.CellBlockMeta = &hbpb.CellBlockMeta{Length: proto.Uint32(uint32(len(cells)))}
	}
	body, err := appendDelimited(nil, h)
	if err == nil {
		body, err = appendDelimited(body, m)
	}
	if err != nil {
		c.t.Errorf("%s: %v", c.method, err)
		return
	}
	c.bytes(append(body, cells...))
}

// fail answers with an exception of a class of org.apache.hadoop.hbase.
func (c *fakeCall) fail(class, text string, doNotRetry bool) {
	c.failAs(c.header.GetCallId(), class, text, doNotRetry)
}

func (c *fakeCall) failAs(id uint32, class, text string, doNotRetry bool) {
	if !strings.HasPrefix(class, "java.") {
		class = "org.apache.hadoop.hbase." + class
	}
	body, err := appendDelimited(nil, &hbpb.ResponseHeader{CallId: &id, Exception: &hbpb.ExceptionResponse{
		ExceptionClassName: &class, DoNotRetry: &doNotRetry,
		StackTrace: proto.String(class + ": " + text + "\n\tat org.apache.hadoop.hbase.Some.where(Some.java:1)\n"),
	}})
	if err != nil {
		c.t.Error(err)
		return
	}
	c.bytes(body)
}

// bytes writes one frame of any content.
func (c *fakeCall) bytes(body []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

// hang breaks the connection instead of answering.
func (c *fakeCall) hang() { c.conn.Close() }

// registryOf answers ClientMetaService; master and meta may change at any time.
func registryOf(master, meta func() *hbpb.ServerName) func(*fakeCall) {
	return func(c *fakeCall) {
		switch c.method {
		case "GetClusterId":
			c.reply(&hbpb.GetClusterIdResponse{ClusterId: proto.String("fake")})
		case "GetActiveMaster":
			c.reply(&hbpb.GetActiveMasterResponse{ServerName: master()})
		case "GetMetaRegionLocations":
			resp := &hbpb.GetMetaRegionLocationsResponse{}
			if at := meta(); at != nil {
				resp.MetaLocations = []*hbpb.RegionLocation{{
					RegionInfo: &hbpb.RegionInfo{RegionId: proto.Uint64(1), TableName: tableProto(metaTable)},
					ServerName: at, SeqNum: proto.Int64(0),
				}}
			}
			c.reply(resp)
		}
	}
}

// newMaster is a fake that is registry and active master in one.
func newMaster(t testing.TB, answer func(*fakeCall)) *fakeServer {
	f := newFake(t)
	f.on(ClientMetaService, registryOf(f.name, f.name))
	f.on(MasterService, answer)
	return f
}

// connect gives a client that repeats quickly.
func connect(t testing.TB, change func(*Config), bootstrap ...*fakeServer) *Client {
	t.Helper()
	cfg := Config{RetryFor: 3 * time.Second, BusyFor: 3 * time.Second, CallTimeout: 10 * time.Second}
	for _, f := range bootstrap {
		cfg.Bootstrap = append(cfg.Bootstrap, f.addr)
	}
	if change != nil {
		change(&cfg)
	}
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.wait = backoff{time.Millisecond, 10 * time.Millisecond}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func wantKind(t testing.TB, err error, want hbackup.Kind) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; wanted kind %q", want)
	}
	if got := hbackup.KindOf(err); got != want {
		t.Fatalf("kind %q instead of %q: %v", got, want, err)
	}
	if s := err.Error(); strings.ContainsAny(s, "\n\t") || strings.Contains(s, "Some.java") {
		t.Fatalf("not one plain line: %q", s)
	}
	var typed *hbackup.Error
	if !errors.As(err, &typed) || typed.Op == "" {
		t.Fatalf("not a typed error: %#v", err)
	}
}

// noLeaks checks, after everything else has ended, that no goroutine of this
// package is left.
func noLeaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		deadline, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for {
			left := ours()
			if left == "" {
				return
			}
			if sleep(deadline, 5*time.Millisecond) != nil {
				t.Errorf("goroutines left:\n%s", left)
				return
			}
		}
	})
}

func ours() string {
	buf := make([]byte, 1<<20)
	var left []string
	for i, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if i > 0 && strings.Contains(g, "hbackup/hbase/rpc.") && !strings.Contains(g, "testing.(*T).Run") && !strings.Contains(g, "testing.tRunner") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
