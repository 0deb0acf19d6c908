package rootfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// faults is a dialer whose connections to data nodes break as the test says.
type faults struct {
	nameNode string
	// onRead and onWrite see the bytes of data nodes and may spoil or refuse them.
	onRead  func(b []byte) error
	onWrite func(b []byte) error
	open    atomic.Int64 // connections not closed
}

func (f *faults) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return &faultyConn{Conn: c, f: f, data: addr != f.nameNode}, nil
}

type faultyConn struct {
	net.Conn
	f      *faults
	data   bool
	closed atomic.Bool
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.data && c.f.onRead != nil && n > 0 {
		if fault := c.f.onRead(b[:n]); fault != nil {
			c.Conn.Close()
			return 0, fault
		}
	}
	return n, err
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.data && c.f.onWrite != nil {
		if fault := c.f.onWrite(b); fault != nil {
			c.Conn.Close()
			return 0, fault
		}
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Close() error {
	if !c.closed.Swap(true) {
		c.f.open.Add(-1)
	}
	return c.Conn.Close()
}

func connectFaulty(t *testing.T, f *faults) rootfs.FS {
	f.nameNode = cluster.Address()
	return connect(t, func(c *rootfs.Config) { c.Dial = f.dial; c.DataTimeout, c.RetryFor = 5*time.Second, 3*time.Second })
}

func content(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func write(t *testing.T, fs rootfs.FS, p string, b []byte) {
	t.Helper()
	w, err := fs.Create(t.Context(), p)
	must(t, err)
	_, err = w.Write(b)
	must(t, err)
	must(t, w.Close())
}

var errCut = errors.New("the cable was pulled")

// Data nodes that break off every now and then cost time, not bytes.
func TestReadSurvivesBreaks(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	p := path.Join(directory(t, fs), "f")
	want := content(6<<20 + 12345)
	write(t, fs, p, want)
	var bytesSeen, breaks int
	f.onRead = func(b []byte) error {
		if bytesSeen += len(b); bytesSeen > 700_000 {
			bytesSeen = 0
			breaks++
			return errCut
		}
		return nil
	}
	for _, ask := range []int{64 << 10, 1 << 20} {
		r, _, err := fs.Open(t.Context(), p, 5)
		must(t, err)
		var got bytes.Buffer
		_, err = io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{r}, make([]byte, ask))
		must(t, err)
		must(t, r.Close())
		if !bytes.Equal(got.Bytes(), want[5:]) {
			t.Fatalf("other bytes came (%d of %d)", got.Len(), len(want)-5)
		}
	}
	if breaks < 10 {
		t.Errorf("only %d breaks", breaks)
	}
	must(t, fs.Close())
	waitForNone(t, "connections", f.open.Load)
}

// A bit that flips on the way is found by the data node's checksums.
func TestReadSurvivesFlippedBits(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	p := path.Join(directory(t, fs), "f")
	want := content(3 << 20)
	write(t, fs, p, want)
	seen, flips := 0, 0
	f.onRead = func(b []byte) error {
		if seen += len(b); seen > 500_000 && len(b) > 10_000 {
			b[len(b)/2] ^= 1
			seen = 0
			flips++
		}
		return nil
	}
	r, _, err := fs.Open(t.Context(), p, 0)
	must(t, err)
	got, err := io.ReadAll(r)
	must(t, err)
	must(t, r.Close())
	if !bytes.Equal(got, want) || flips == 0 {
		t.Fatalf("%d bits flipped; the bytes are right: %v", flips, bytes.Equal(got, want))
	}
}

// Where every replica is bad, the reader gives up and says so.
func TestReadGivesUp(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	p := path.Join(directory(t, fs), "f")
	write(t, fs, p, content(3<<20))
	r, _, err := fs.Open(t.Context(), p, 0)
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 1<<20))
	must(t, err)
	f.onRead = func([]byte) error { return errCut }
	_, err = io.Copy(io.Discard, r)
	wantKind(t, err, hbackup.KindUnavailable)
	if again, err2 := r.Read(make([]byte, 10)); again != 0 || err2 == nil {
		t.Errorf("afterwards: %d, %v", again, err2)
	}
	must(t, r.Close())
}

// A file that takes the path of the one being read is not continued with.
func TestReadOfReplacedFile(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	p := path.Join(directory(t, fs), "f")
	write(t, fs, p, content(3<<20))
	r, info, err := fs.Open(t.Context(), p, 0)
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 1<<20))
	must(t, err)
	must(t, fs.Remove(t.Context(), p))
	write(t, fs, p, make([]byte, 3<<20))
	now, err := fs.Stat(t.Context(), p)
	must(t, err)
	if info.ID == 0 || now.ID == info.ID {
		t.Errorf("ids %d and %d", info.ID, now.ID)
	}
	once := true
	f.onRead = func([]byte) error {
		if once {
			once = false
			return errCut
		}
		return nil
	}
	_, err = io.Copy(io.Discard, r)
	wantKind(t, err, hbackup.KindConflict)
	must(t, r.Close())
}

// A write whose pipeline breaks fails by its end at the latest, leaves no file,
// no connection and none of the library's goroutines.
func TestWriteFaults(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	dir := directory(t, fs)
	var seen atomic.Int64
	limit := int64(1500_000)
	for _, way := range []struct {
		name    string
		onRead  func([]byte) error
		onWrite func([]byte) error
	}{
		{"writes fail", nil, func(b []byte) error {
			if seen.Add(int64(len(b))) > limit {
				return errCut
			}
			return nil
		}},
		{"acknowledgements fail", func(b []byte) error {
			if seen.Add(int64(len(b))) > 100 {
				return errCut
			}
			return nil
		}, nil},
		{"nothing goes", func([]byte) error { return errCut }, nil},
	} {
		t.Run(way.name, func(t *testing.T) {
			f.onRead, f.onWrite = way.onRead, way.onWrite
			defer func() { f.onRead, f.onWrite = nil, nil }()
			for _, size := range []int{100, 900_000, 5 << 20} {
				seen.Store(0)
				p := path.Join(dir, "f")
				w, err := fs.Create(t.Context(), p)
				must(t, err)
				_, err = w.Write(content(size))
				if err == nil {
					err = w.Close()
				} else {
					must(t, w.Abort())
				}
				if err == nil {
					if int64(size) > limit || way.name == "nothing goes" {
						t.Errorf("%d bytes were written", size)
					}
					info, err := fs.Stat(t.Context(), p)
					must(t, err)
					if info.Size != int64(size) {
						t.Errorf("the file holds %d of %d bytes", info.Size, size)
					}
					must(t, fs.Remove(t.Context(), p))
					continue
				}
				if !strings.Contains(err.Error(), fs.URI()+p) {
					t.Errorf("the error does not name the file: %v", err)
				}
				_, err = fs.Stat(t.Context(), p)
				wantKind(t, err, hbackup.KindNotFound)
			}
		})
	}
	must(t, fs.Close())
	waitForNone(t, "connections", f.open.Load)
	waitForNone(t, "goroutines of the library", libraryGoroutines)
}

// What was begun and given up leaves nothing behind.
func TestNoLeaks(t *testing.T) {
	f := &faults{}
	fs := connectFaulty(t, f)
	dir := directory(t, fs)
	p := path.Join(dir, "f")
	write(t, fs, p, content(3<<20))
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 5 {
		r, _, err := fs.Open(ctx, p, 0)
		must(t, err)
		_, err = r.Read(make([]byte, 10))
		must(t, err)
		defer r.Close()
		w, err := fs.Create(ctx, path.Join(dir, string(rune('a'+i))))
		must(t, err)
		_, err = w.Write(make([]byte, 300_000))
		must(t, err)
		defer w.Abort()
	}
	cancel()
	must(t, fs.Close())
	waitForNone(t, "connections", f.open.Load)
}

func libraryGoroutines() int64 {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	return int64(bytes.Count(buf, []byte("internal/transfer.(*blockWriteStream)")))
}

// waitForNone waits until nothing of a kind is left.
func waitForNone(t *testing.T, what string, count func() int64) {
	t.Helper()
	for range 500 {
		if count() <= 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Fatalf("%d %s are left:\n%s", count(), what, buf[:runtime.Stack(buf, true)])
}
