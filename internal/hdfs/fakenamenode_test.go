package hdfs

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// fakeNameNode speaks enough of Hadoop's RPC to be asked by the client, and
// answers as the test says.
type fakeNameNode struct {
	listener net.Listener
	answer   func(method string, request []byte) fakeAnswer

	mu    sync.Mutex
	calls map[string]int
	conns map[net.Conn]bool
}

// fakeAnswer is a response message, or an exception, or a misdeed.
type fakeAnswer struct {
	body               []byte
	exception, message string
	hang, hangUp       bool
	raw                []byte
}

func startNameNode(t *testing.T, answer func(method string, request []byte) fakeAnswer) *fakeNameNode {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &fakeNameNode{listener: l, answer: answer, calls: map[string]int{}, conns: map[net.Conn]bool{}}
	go n.accept()
	t.Cleanup(n.stop)
	return n
}

func (n *fakeNameNode) addr() string { return n.listener.Addr().String() }

func (n *fakeNameNode) stop() {
	n.listener.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.Close()
	}
}

// count gives the calls of the methods, and of all but the lease renewals for none.
func (n *fakeNameNode) count(methods ...string) (sum int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for m, c := range n.calls {
		if len(methods) == 0 && m != renewLease {
			sum += c
		}
		for _, want := range methods {
			if m == want {
				sum += c
			}
		}
	}
	return sum
}

func (n *fakeNameNode) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		n.conns[c] = true
		n.mu.Unlock()
		go n.serve(c)
	}
}

func (n *fakeNameNode) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 7)); err != nil { // "hrpc", version, class, authentication
		return
	}
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		packet := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, packet); err != nil {
			return
		}
		method, _ := requestMethod(append(size[:], packet...))
		if method == "" {
			continue // the connection context
		}
		header, rest, _ := delimited(packet)
		_, rest, _ = delimited(rest)
		request, _, _ := delimited(rest)
		n.mu.Lock()
		n.calls[method]++
		n.mu.Unlock()
		a := n.answer(method, request)
		switch {
		case a.hang:
			io.Copy(io.Discard, c)
			return
		case a.hangUp && a.raw == nil:
			return
		case a.raw != nil:
			c.Write(a.raw)
			if a.hangUp {
				return
			}
			continue
		}
		c.Write(response(protowire.DecodeZigZag(varintField(header, 3)), a))
	}
}

func response(callID int64, a fakeAnswer) []byte {
	header := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(uint32(callID)))
	status := uint64(0)
	if a.exception != "" {
		status = 1
	}
	header = protowire.AppendVarint(protowire.AppendTag(header, 2, protowire.VarintType), status)
	if a.exception != "" {
		header = field(field(header, 4, []byte(a.exception)), 5, []byte(a.message))
	}
	frame := protowire.AppendBytes(nil, header)
	if a.exception == "" {
		frame = protowire.AppendBytes(frame, a.body)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func field(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func number(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// status makes an HdfsFileStatusProto of a file.
func status(size, id uint64, extra ...func([]byte) []byte) []byte {
	b := number(nil, 1, 2)
	b = field(b, 2, []byte("f"))
	b = number(b, 3, size)
	b = field(b, 4, number(nil, 1, 0o644))
	b = field(field(b, 5, []byte("u")), 6, []byte("g"))
	b = number(number(number(b, 7, 1000), 8, 1000), 13, id)
	for _, f := range extra {
		b = f(b)
	}
	return b
}

// located makes a LocatedBlocksProto without blocks.
func located(size uint64, open bool, extra ...func([]byte) []byte) []byte {
	var flag uint64
	if open {
		flag = 1
	}
	b := number(number(number(nil, 1, size), 3, flag), 5, 1)
	for _, f := range extra {
		b = f(b)
	}
	return b
}

// defaults makes a GetServerDefaultsResponseProto.
func defaults() []byte {
	d := number(nil, 1, 1<<20)
	for i := protowire.Number(2); i <= 5; i++ {
		d = number(d, i, 1)
	}
	return field(nil, 1, d)
}

// oneFile answers for a file system with one file.
func oneFile(fileStatus, blocks []byte) func(string, []byte) fakeAnswer {
	return func(method string, request []byte) fakeAnswer {
		switch method {
		case "getServerDefaults":
			return fakeAnswer{body: defaults()}
		case "getFileInfo":
			if src, _ := bytesField(request, 1); !strings.HasSuffix(string(src), "/f") {
				return fakeAnswer{}
			}
			return fakeAnswer{body: field(nil, 1, fileStatus)}
		case "getBlockLocations":
			return fakeAnswer{body: field(nil, 1, blocks)}
		case renewLease:
			return fakeAnswer{}
		}
		return fakeAnswer{exception: "java.lang.UnsupportedOperationException", message: method}
	}
}

func connectTo(t *testing.T, change func(*Config), nodes ...*fakeNameNode) *FS {
	t.Helper()
	cfg := Config{User: "u", RetryFor: 10 * time.Second}
	for _, n := range nodes {
		cfg.NameNodes = append(cfg.NameNodes, n.addr())
	}
	if change != nil {
		change(&cfg)
	}
	fs, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}
