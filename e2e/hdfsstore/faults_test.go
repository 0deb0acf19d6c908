package hdfsstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// cutting is a dialer of connections that break, each after a random number of
// bytes in one of its directions: in the middle of a request, of an answer, or
// between them.
type cutting struct {
	nameNode, dataNode int          // mean bytes before a cut, 0: never
	cuts               atomic.Int64 // that were made
}

func (d *cutting) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	mean := d.dataNode
	if addr == cluster.Address() {
		mean = d.nameNode
	}
	if err != nil || mean == 0 {
		return c, err
	}
	cut := &cutConn{Conn: c, d: d}
	cut.reads.Store(1 << 60)
	cut.writes.Store(1 << 60)
	if left := rand.Int64N(2 * int64(mean)); rand.IntN(3) > 0 {
		cut.reads.Store(left)
	} else {
		cut.writes.Store(left)
	}
	return cut, nil
}

type cutConn struct {
	net.Conn
	d             *cutting
	reads, writes atomic.Int64 // bytes left
}

func (c *cutConn) Read(p []byte) (int, error) {
	left := c.reads.Load()
	if left <= 0 {
		return 0, c.cut()
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.reads.Add(int64(-n))
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	left := c.writes.Load()
	if left < int64(len(p)) {
		n, _ := c.Conn.Write(p[:max(left, 0)])
		return n, c.cut()
	}
	c.writes.Add(int64(-len(p)))
	return c.Conn.Write(p)
}

func (c *cutConn) cut() error {
	c.d.cuts.Add(1)
	c.Conn.Close()
	return &net.OpError{Op: "use", Net: "tcp", Addr: c.RemoteAddr(), Err: syscall.ECONNRESET}
}

// outcomeUnknown are the kinds of error after which only a look can tell.
var outcomeUnknown = []hbackup.Kind{hbackup.KindTimeout, hbackup.KindUnavailable, hbackup.KindInterrupted}

// race is what many writers of one key came to.
type race struct {
	mu      sync.Mutex
	won     []string // bodies whose put succeeded
	unknown []string
}

func (r *race) put(t *testing.T, s storage.Store, key storage.Key, body string) {
	_, err := storage.PutBytes(t.Context(), s, key, []byte(body), true)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.won = append(r.won, body)
	case hbackup.IsKind(err, outcomeUnknown...):
		r.unknown = append(r.unknown, body)
	case !hbackup.IsKind(err, hbackup.KindExists):
		t.Errorf("Put %s: %v", key, err)
	}
}

// check compares with what is there, seen over connections that hold.
func (r *race) check(t *testing.T, s storage.Store, key storage.Key) {
	data, _, err := storage.ReadAll(t.Context(), s, key, 16<<20)
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound):
		if len(r.won) > 0 || len(r.unknown) == 0 {
			t.Errorf("%s is not there; %d have won it, of %d nobody knows", key, len(r.won), len(r.unknown))
		}
	case err != nil:
		t.Errorf("read %s: %v", key, err)
	case len(r.won) > 1 || len(r.won) == 1 && r.won[0] != string(data):
		t.Errorf("%s was won by %d; is their content there: %v", key, len(r.won), slices.Contains(r.won, string(data)))
	case len(r.won) == 0 && !slices.Contains(r.unknown, string(data)):
		t.Errorf("%s has %d bytes that nobody may have put", key, len(data))
	}
}

// TestCutConnections races for keys over connections that break all the time.
// Each key has one winner, who knows it or, when it cannot be told, is told so;
// and nothing is half.
func TestCutConnections(t *testing.T) {
	d := &cutting{nameNode: 1500, dataNode: 3 << 20}
	steady := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	races := make([]race, 30)
	var wg sync.WaitGroup
	for w := range 6 {
		s := openAt(t, directory(t), hdfs.Config{User: cluster.User(), Dial: d.dial, RetryFor: 5 * time.Second})
		wg.Go(func() {
			for i := range races {
				body := fmt.Sprintf("%d ", w) + strings.Repeat("x", (w+i)%4*400_000)
				races[i].put(t, s, storage.Key(fmt.Sprintf("r/%d", i)), body)
			}
		})
	}
	wg.Wait()
	won := 0
	for i := range races {
		races[i].check(t, steady, storage.Key(fmt.Sprintf("r/%d", i)))
		won += len(races[i].won)
	}
	if d.cuts.Load() == 0 || won == 0 {
		t.Errorf("%d cuts, %d keys won: this tested nothing", d.cuts.Load(), won)
	}
	t.Logf("%d cuts, %d of %d keys won", d.cuts.Load(), won, len(races))
}

// TestCutReads reads over connections that break: the bytes are right, or there
// is an error.
func TestCutReads(t *testing.T) {
	steady := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	body := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	put(t, steady, "a", string(body))
	d := &cutting{dataNode: 2 << 20}
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User(), Dial: d.dial, RetryFor: 10 * time.Second})
	for i := range 20 {
		offset := rand.Int64N(int64(len(body)))
		r, _, err := s.Get(t.Context(), "a", storage.Range{Offset: offset})
		must(t, err)
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, body[offset:]) || err != nil && !hbackup.IsKind(err, outcomeUnknown...) {
			t.Fatalf("read %d from %d: %d bytes, %v", i, offset, len(got), err)
		}
		must(t, r.Close())
	}
	if d.cuts.Load() == 0 {
		t.Error("nothing was cut")
	}
}

// TestNameNodeThatIsDown has the address of a name node that nobody answers at
// before that of the active one.
func TestNameNodeThatIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	down := l.Addr().String()
	must(t, l.Close())
	at := "hdfs://pair" + pathOf(t)
	s := openAt(t, at, hdfs.Config{User: cluster.User(), NameNodes: []string{down, cluster.Address()}})
	put(t, s, "a", "1")
	data, _, err := storage.ReadAll(t.Context(), s, "a", 10)
	if err != nil || string(data) != "1" {
		t.Errorf("%q, %v", data, err)
	}
	_, err = s.Stat(t.Context(), "b")
	wantKind(t, err, hbackup.KindNotFound)
	if !strings.Contains(err.Error(), at+"/b") {
		t.Errorf("%v", err)
	}

	alone := openAt(t, at, hdfs.Config{User: cluster.User(), NameNodes: []string{down}, RetryFor: time.Second})
	_, err = storage.PutBytes(t.Context(), alone, "c", []byte("x"), true)
	wantKind(t, err, hbackup.KindUnavailable)
	if hbackup.HintOf(err) == "" || !strings.Contains(err.Error(), at+"/c") {
		t.Errorf("%v; hint %q", err, hbackup.HintOf(err))
	}
}

// TestRestart takes HDFS down and brings it back while objects are put. Whatever
// a put said then holds.
func TestRestart(t *testing.T) {
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User(), RetryFor: 2 * time.Minute})
	put(t, s, "before", "1")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var races sync.Map // by key
	var after atomic.Int64
	restarted := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := storage.Key(fmt.Sprintf("%d/%d", w, i))
				r := &race{}
				races.Store(key, r)
				r.put(t, s, key, fmt.Sprintf("%d %d ", w, i)+strings.Repeat("y", i%3*700_000))
				select {
				case <-restarted:
					if len(r.won) == 1 && after.Add(1) == 20 {
						stop()
					}
				default:
				}
			}
		})
	}
	cluster.Kill()
	must(t, cluster.Restart(t.Context()))
	close(restarted)
	wg.Wait()
	n := 0
	for key, r := range races.Range {
		r.(*race).check(t, s, key.(storage.Key))
		n++
	}
	if t.Logf("%d keys", n); after.Load() < 20 {
		t.Errorf("only %d puts after the restart", after.Load())
	}
	data, _, err := storage.ReadAll(t.Context(), s, "before", 10)
	if err != nil || string(data) != "1" {
		t.Errorf("what was there before: %q, %v", data, err)
	}
}
