package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// znode is a payload as HBase writes it.
func znode(t testing.TB, m proto.Message) []byte {
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	id := "master:16000\x01\x02\x03\x04\x05\x06\x07\x08"
	b := binary.BigEndian.AppendUint32([]byte{0xFF}, uint32(len(id)))
	return append(append(append(b, id...), "PBUF"...), body...)
}

// fakeZooKeeper serves nodes to one session per connection.
type fakeZooKeeper struct {
	t     testing.TB
	addr  string
	mu    sync.Mutex
	nodes map[string][]byte
	code  int32  // error of every getData; 0: none
	raw   []byte // sent instead of any answer
	mute  bool
	lost  int // sessions not closed by the client
}

func newZooKeeper(t testing.TB) *fakeZooKeeper {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &fakeZooKeeper{t: t, addr: ln.Addr().String(), nodes: map[string][]byte{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				z.serve(c)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return z
}

func (z *fakeZooKeeper) set(f func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	f()
}

func (z *fakeZooKeeper) serve(c net.Conn) {
	hello, err := readFrame(c, 1000)
	z.mu.Lock()
	defer z.mu.Unlock()
	if err != nil || z.mute {
		z.mu.Unlock()
		c.Read(make([]byte, 1)) // until the client leaves
		z.mu.Lock()
		return
	}
	if z.raw != nil {
		c.Write(z.raw)
		return
	}
	if len(hello) != 45 {
		z.t.Errorf("connect request of %d bytes", len(hello))
	}
	answer := binary.BigEndian.AppendUint32(nil, 0)
	answer = binary.BigEndian.AppendUint32(answer, 10000)
	answer = binary.BigEndian.AppendUint64(answer, 77)
	zkWrite(c, appendZKString(answer, make([]byte, 16)))
	get, err := readFrame(c, 1000)
	if err != nil || len(get) < 12 {
		return
	}
	path := string(get[12 : len(get)-1])
	data, there := z.nodes[path]
	code := z.code
	if code == 0 && !there {
		code = zkNoNode
	}
	answer = append(get[:4:4], 0, 0, 0, 0, 0, 0, 0, 9)
	answer = binary.BigEndian.AppendUint32(answer, uint32(code))
	if code == 0 {
		answer = append(appendZKString(answer, data), make([]byte, 68)...)
	}
	zkWrite(c, answer)
	bye, err := readFrame(c, 1000)
	if err != nil || len(bye) != 8 || int32(binary.BigEndian.Uint32(bye[4:])) != zkClose {
		z.lost++
	}
}

func TestZooKeeperRegistry(t *testing.T) {
	noLeaks(t)
	f := newFake(t)
	f.on(MasterService, running)
	z := newZooKeeper(t)
	state := hbpb.RegionState_OPEN
	z.nodes["/h/b/hbaseid"] = znode(t, &hbpb.ClusterId{ClusterId: proto.String("id")})
	z.nodes["/h/b/master"] = znode(t, &hbpb.Master{Master: f.name(), InfoPort: proto.Uint32(1<<32 - 1)})
	dead := newFake(t)
	dead.stop()
	c, err := Dial(t.Context(), Config{ZooKeeper: []string{dead.addr, z.addr}, ZNodeParent: "/h/b", RetryFor: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.ClusterID() != "id" {
		t.Fatalf("cluster id %q", c.ClusterID())
	}
	if ok, err := c.IsMasterRunning(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got := c.registry.(*zkRegistry).servers[0]; got != z.addr {
		t.Errorf("the server that answers is not asked first: %s", got)
	}

	meta := func() (ServerName, error) { return c.registry.metaServer(t.Context()) }
	_, err = meta()
	if !errors.Is(err, errNoMeta) || !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Fatal(err)
	}
	set := func(s hbpb.RegionState_State) {
		z.set(func() {
			z.nodes["/h/b/meta-region-server"] = znode(t, &hbpb.MetaRegionServer{Server: f.name(), State: &s})
		})
	}
	set(hbpb.RegionState_OPENING)
	if _, err = meta(); !errors.Is(err, errNoMeta) {
		t.Fatal(err)
	}
	set(state)
	if at, err := meta(); err != nil || at.Addr() != f.addr {
		t.Fatal(at, err)
	}
	z.set(func() {
		if z.lost != 0 {
			t.Errorf("%d sessions were left open", z.lost)
		}
		delete(z.nodes, "/h/b/master")
	})
	if _, err := c.registry.activeMaster(t.Context()); !errors.Is(err, errNoMaster) {
		t.Fatal(err)
	}
}

func TestZooKeeperFailures(t *testing.T) {
	noLeaks(t)
	z := newZooKeeper(t)
	dial := func(ctx context.Context) error {
		c, err := Dial(ctx, Config{ZooKeeper: []string{z.addr}})
		if err == nil {
			c.Close()
		}
		return err
	}
	wantKind(t, dial(t.Context()), hbackup.KindUnavailable) // no such node
	for _, code := range []int32{zkNoAuth, zkNeedSASL, -4} {
		z.set(func() { z.code = code })
		wantKind(t, dial(t.Context()), hbackup.KindUnavailable)
	}
	// Another kind of server at the address: an HBase server, a web server.
	for _, raw := range []string{"\x00\x00\x00\x05\x01\x02\x03\x04\x05", "HTTP/1.1 400 Bad Request\r\n", "\x00\x00\x00\x02\x00\x00"} {
		z.set(func() { z.raw = []byte(raw) })
		wantKind(t, dial(t.Context()), hbackup.KindUnavailable)
	}
	// One that never answers.
	z.set(func() { z.raw, z.mute = nil, true })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	wantKind(t, dial(ctx), hbackup.KindTimeout)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	wantKind(t, dial(ctx), hbackup.KindInterrupted)
}

func TestZNodePayload(t *testing.T) {
	good := znode(t, &hbpb.ClusterId{ClusterId: proto.String("x")})
	var id hbpb.ClusterId
	if err := decodeZNode(good, &id); err != nil || id.GetClusterId() != "x" {
		t.Fatal(err)
	}
	for i := range len(good) {
		if err := decodeZNode(good[:i], &id); !errors.Is(err, errCorrupt) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if err := decodeZNode(append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, "PBUF"...), &id); !errors.Is(err, errCorrupt) {
		t.Fatal(err)
	}
}

func FuzzZooKeeper(f *testing.F) {
	node := znode(f, &hbpb.Master{Master: &hbpb.ServerName{HostName: proto.String("h"), Port: proto.Uint32(1)}})
	answer := append([]byte{0, 0, 0, 1}, make([]byte, 12)...)
	f.Add(node)
	f.Add(appendZKString(answer, node))
	f.Add(append(answer[:12:12], 0xFF, 0xFF, 0xFF, 0x9B))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m hbpb.Master
		if err := decodeZNode(b, &m); err == nil {
			serverName(m.Master)
		}
		if data, err := parseZKData(b, 1); err == nil && len(data) > len(b) {
			t.Fatal(len(data))
		}
		_ = checkZKConnect(b)
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		if got, err := readFrame(io.MultiReader(strings.NewReader(string(frame)), strings.NewReader(string(b))), 1<<20); err == nil && string(got) != string(b) {
			t.Fatal("a frame that reads differently")
		}
	})
}
