package hdfsstore

import (
	"context"
	"crypto/rand"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup/engine"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// documented gives the calls that the documentation lists.
func documented(t *testing.T, row string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	must(t, err)
	_, table, _ := strings.Cut(string(text), "<!-- hdfs calls -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+row+" |") {
			var calls []string
			for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(line, -1) {
				calls = append(calls, m[1])
			}
			return calls
		}
	}
	t.Fatalf("the documentation lists no calls of %s", row)
	return nil
}

// counter counts calls by name.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[name]++
}

func (c *counter) copy() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// compare reports calls that are not documented, and the other way round.
func (c *counter) compare(t *testing.T, list []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.counts {
		if !slices.Contains(list, name) {
			t.Errorf("%s was called %d times, and is not documented", name, n)
		}
	}
	for _, name := range list {
		if c.counts[name] == 0 && name != "renewLease" { // that comes by the clock
			t.Errorf("%s is documented and was not called", name)
		}
	}
}

// dial counts the methods that are called on the name node.
func (c *counter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil || addr != cluster.Address() {
		return conn, err
	}
	return &countedConn{conn, c}, nil
}

type countedConn struct {
	net.Conn
	c *counter
}

// Write counts a request: four bytes of length, then the delimited messages
// RpcRequestHeaderProto and RequestHeaderProto, whose first field is the method's name. The
// packets of the handshake have a call's number below zero.
func (c *countedConn) Write(p []byte) (int, error) {
	if len(p) > 4 && string(p[:4]) != "hrpc" {
		header, n := protowire.ConsumeBytes(p[4:])
		if n > 0 && callID(header) >= 0 {
			request, _ := protowire.ConsumeBytes(p[4+n:])
			_, _, tag := protowire.ConsumeTag(request)
			name, _ := protowire.ConsumeBytes(request[max(tag, 0):])
			c.c.add(string(name))
		}
	}
	return c.Conn.Write(p)
}

// callID gives field 3 of the header.
func callID(header []byte) int64 {
	for len(header) > 0 {
		number, kind, n := protowire.ConsumeField(header)
		if n < 0 {
			return -1
		}
		if number == 3 && kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(header)
			v, _ := protowire.ConsumeVarint(header[tag:])
			return protowire.DecodeZigZag(v)
		}
		header = header[n:]
	}
	return -1
}

// live does with a store all that can be done.
func live(t *testing.T, s storage.Store) {
	t.Helper()
	_, err := s.ServerTime(t.Context())
	must(t, err)
	big := strings.Repeat("0123456789abcdef", 3<<20/16)
	put(t, s, "d/e/big", big)
	put(t, s, "d/empty", "")
	for _, text := range []string{"1", "2"} {
		_, err := storage.PutBytes(t.Context(), s, "d/a", []byte(text), false)
		must(t, err)
	}
	_, err = storage.PutBytes(t.Context(), s, "d/a", nil, true)
	wantKind(t, err, "exists")
	for key, want := range map[storage.Key]string{"d/e/big": big, "d/empty": "", "d/a": "2"} {
		if data, _, err := storage.ReadAll(t.Context(), s, key, 4<<20); err != nil || string(data) != want {
			t.Errorf("%s: %d bytes, %v", key, len(data), err)
		}
	}
	n := 0
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		must(t, err)
		n++
	}
	must(t, s.Delete(t.Context(), "d/e/big"))
	failures, err := s.DeleteBatch(t.Context(), []storage.Key{"d/empty", "d/a", "d/none"})
	if err != nil || len(failures) > 0 || n != 3 {
		t.Errorf("%d listed; deleting: %v, %v", n, failures, err)
	}
}

// TestCallsNatively: no call goes to the name node that is not documented.
func TestCallsNatively(t *testing.T) {
	c := &counter{}
	live(t, openAt(t, directory(t), hdfs.Config{User: cluster.User(), Dial: c.dial}))
	c.compare(t, documented(t, "a name node"))
}

// TestCallsOfASmallFile counts what a file costs the name node in a folder that is
// known: it is made, given a block, completed, looked at, and given its name. Only
// the completion is asked for again, until the data nodes have told of the block.
func TestCallsOfASmallFile(t *testing.T) {
	c := &counter{}
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User(), Dial: c.dial})
	put(t, s, "d/first", "x")
	before := c.copy()
	const files = 200
	err := engine.Local(t.Context(), 8, engine.Each(make([]struct{}, files)), func(ctx context.Context, _ struct{}) error {
		_, err := storage.PutBytes(ctx, s, storage.Key("d/"+rand.Text()), []byte("small"), true)
		return err
	})
	must(t, err)
	for _, name := range []string{"create", "addBlock", "complete", "getFileInfo", "rename2", "mkdirs", "updateBlockForPipeline", "delete"} {
		want := map[string]int{"create": files, "addBlock": files, "getFileInfo": files, "rename2": files}[name]
		if got := c.copy()[name] - before[name]; name == "complete" {
			t.Logf("%.2f completions a file", float64(got)/files)
		} else if got != want {
			t.Errorf("%d files took %d calls of %s; want %d", files, got, name, want)
		}
	}
}

// TestCallsOverHTTP has a proxy count.
func TestCallsOverHTTP(t *testing.T) {
	c := &counter{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: cluster.HTTPAddress()})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.add(r.URL.Query().Get("op"))
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	live(t, openAt(t, directory(t), hdfs.Config{User: cluster.User(), WebHDFS: []string{server.URL}}))
	c.compare(t, documented(t, "WebHDFS"))
}
