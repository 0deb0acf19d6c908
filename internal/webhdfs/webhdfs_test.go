package webhdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// open gives the file system behind the nodes.
func open(t testing.TB, change func(*Config), nodes ...*fakeNode) *FS {
	t.Helper()
	cfg := Config{Authority: "ns", User: "u", RetryFor: 10 * time.Second, StartFor: 10 * time.Second}
	for _, n := range nodes {
		cfg.Addresses = append(cfg.Addresses, n.URL)
	}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func write(t testing.TB, h *FS, path, text string) files.Info {
	t.Helper()
	w, err := h.Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Info()
}

func read(t testing.TB, h *FS, path string, offset int64) (string, error) {
	t.Helper()
	r, _, err := h.Open(t.Context(), path, offset)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

func wantKind(t testing.TB, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("%v (kind %q), want kind %q", err, hbackup.KindOf(err), kind)
	}
}

func mkdir(t testing.TB, h *FS, path string) {
	t.Helper()
	if err := h.MkdirAll(t.Context(), path); err != nil {
		t.Fatal(err)
	}
}

// Each thing is done once, with a name node and with a gateway.
func TestFiles(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		t.Run(fmt.Sprintf("gateway %v", gateway), func(t *testing.T) {
			fs := newFakeHDFS()
			h := open(t, nil, fs.start(t, func(n *fakeNode) { n.gateway = gateway }))
			mkdir(t, h, "/d/e")
			info := write(t, h, "/d/f", "12345")
			if info.Size != 5 || info.Path != "/d/f" || info.Name != "f" || info.Dir || (info.ID == 0) != gateway {
				t.Errorf("%+v", info)
			}
			for offset := range int64(6) {
				if got, err := read(t, h, "/d/f", offset); err != nil || got != "12345"[offset:] {
					t.Errorf("from %d: %q, %v", offset, got, err)
				}
			}
			_, err := read(t, h, "/d/f", 6)
			wantKind(t, err, hbackup.KindUsage)
			_, err = read(t, h, "/d/e", 0)
			wantKind(t, err, hbackup.KindConflict)
			_, err = h.Stat(t.Context(), "/d/g")
			wantKind(t, err, hbackup.KindNotFound)
			if !strings.Contains(err.Error(), "hdfs://ns/d/g") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			wantKind(t, h.Remove(t.Context(), "/d"), hbackup.KindConflict)
			wantKind(t, h.Remove(t.Context(), "/"), hbackup.KindRefused)
			_, err = h.Stat(t.Context(), "d")
			wantKind(t, err, hbackup.KindUsage)
			_, err = h.ReadDirPage(t.Context(), "/d/f", "")
			wantKind(t, err, hbackup.KindConflict)
			for range 2 { // a missing one is no error
				if err := h.Remove(t.Context(), "/d/f"); err != nil {
					t.Error(err)
				}
			}
			wantKind(t, h.RemoveEmptyDir(t.Context(), "/d/f"), hbackup.KindNotFound)
			if err := h.RemoveEmptyDir(t.Context(), "/d/e"); gateway {
				wantKind(t, err, hbackup.KindUnsupported)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A page has files.PageSize entries, whatever the name node puts into one answer.
func TestReadDirPage(t *testing.T) {
	for i, n := range []int{0, 1, fakeBatch, fakeBatch + 1, files.PageSize, files.PageSize + 1, files.PageSize + 1} {
		fs := newFakeHDFS()
		h := open(t, nil, fs.start(t, func(n *fakeNode) { n.gateway = i == 6 }))
		mkdir(t, h, "/d")
		for i := range n {
			fs.add(fmt.Sprintf("/d/é%04d", i), i%2 == 0, nil)
		}
		seen, pages := 0, 0
		for after := ""; ; pages++ {
			page, err := h.ReadDirPage(t.Context(), "/d", after)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range page {
				if want := fmt.Sprintf("é%04d", seen+i); f.Name != want || f.Path != "/d/"+want || f.Dir != ((seen+i)%2 == 0) {
					t.Fatalf("%+v, want %s", f, want)
				}
			}
			seen += len(page)
			if len(page) < files.PageSize {
				break
			}
			after = page[len(page)-1].Name
		}
		if seen != n || pages != n/files.PageSize {
			t.Errorf("%d of %d in %d pages", seen, n, pages)
		}
	}
}

// What is no answer of WebHDFS is never taken for one: an error, and not that a
// file is missing.
func TestAnswersOfOthers(t *testing.T) {
	const html = "<html><body>Sign in</body></html>"
	for name, c := range map[string]struct {
		status int
		body   string
		header [2]string
		kind   hbackup.Kind
	}{
		"a page":              {200, html, [2]string{"Content-Type", "text/html"}, hbackup.KindUnsupported},
		"no such page":        {404, html, [2]string{}, hbackup.KindUnsupported},
		"another object":      {200, `{"a":1}`, [2]string{}, hbackup.KindUnsupported},
		"null":                {200, `{"FileStatus":null,"boolean":null,"DirectoryListing":null}`, [2]string{}, hbackup.KindUnsupported},
		"something behind":    {200, `{"boolean":true} x`, [2]string{}, hbackup.KindUnsupported},
		"a strange type":      {200, `{"FileStatus":{"type":"SOCKET"}}`, [2]string{}, hbackup.KindUnsupported},
		"a length below zero": {200, `{"FileStatus":{"type":"FILE","length":-1}}`, [2]string{}, hbackup.KindUnsupported},
		"a text for a number": {200, `{"FileStatus":{"type":"FILE","length":"1"}}`, [2]string{}, hbackup.KindUnsupported},
		"Kerberos":            {401, html, [2]string{"WWW-Authenticate", "Negotiate"}, hbackup.KindDenied},
		"forbidden":           {403, html, [2]string{}, hbackup.KindDenied},
		"elsewhere":           {302, "", [2]string{"Location", "https://sso.example.org/login?token=hunter2"}, hbackup.KindUnsupported},
		"too much":            {429, "", [2]string{}, hbackup.KindThrottled},
		"broken":              {500, html, [2]string{}, hbackup.KindOther},
		"an empty exception":  {500, `{"RemoteException":{}}`, [2]string{}, hbackup.KindOther},
	} {
		t.Run(name, func(t *testing.T) {
			fs := newFakeHDFS()
			h := open(t, func(c *Config) { c.RetryFor = -1 }, fs.start(t, func(n *fakeNode) {
				n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
					if c.header[0] != "" {
						w.Header().Set(c.header[0], c.header[1])
					}
					w.WriteHeader(c.status)
					io.WriteString(w, c.body)
					return true
				}
			}))
			_, err := h.Stat(t.Context(), "/f")
			wantKind(t, err, c.kind)
			if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "hdfs://ns/f") {
				t.Errorf("%v", err)
			}
			wantKind(t, h.Remove(t.Context(), "/f"), c.kind)
			_, err = h.ReadDirPage(t.Context(), "/f", "")
			wantKind(t, err, c.kind)
			if _, err = h.Create(t.Context(), "/f"); err == nil {
				t.Error("a file was begun")
			}
			if _, _, err = h.Open(t.Context(), "/f", 0); err == nil {
				t.Error("a file was opened")
			}
		})
	}
}

// What name nodes say when they cannot: the next one is asked, and a fail-over in
// between costs no error.
func TestFailOver(t *testing.T) {
	fs := newFakeHDFS()
	var active atomic.Int32
	node := func(i int32) *fakeNode {
		return fs.start(t, func(n *fakeNode) {
			n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
				if i != active.Load() {
					refuse(w, 403, "ipc.StandbyException", "Operation category READ is not supported in state standby")
				}
				return i != active.Load()
			}
		})
	}
	first, second := node(0), node(1)
	down := fs.start(t)
	down.Close()
	h := open(t, nil, down, first, second)
	mkdir(t, h, "/d")
	for i := range int32(4) {
		active.Store(i % 2)
		info := write(t, h, fmt.Sprintf("/d/t%d", i), "abc")
		if err := h.Publish(t.Context(), info, fmt.Sprintf("/d/f%d", i), false); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, h, fmt.Sprintf("/d/f%d", i), 1); err != nil || got != "bc" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	// The one that answered is asked first.
	before := fs.calls["GETFILESTATUS"]
	if _, err := h.Stat(t.Context(), "/d/f1"); err != nil || fs.calls["GETFILESTATUS"] != before+1 {
		t.Errorf("%d calls, %v", fs.calls["GETFILESTATUS"]-before, err)
	}
	active.Store(7)
	h.waiter.RetryFor = 300 * time.Millisecond
	_, err := h.Stat(t.Context(), "/d/f1")
	wantKind(t, err, hbackup.KindUnavailable)
}

// Nobody listens: that is said after StartFor, though RetryFor is long.
func TestNobodyListens(t *testing.T) {
	n := newFakeHDFS().start(t)
	n.Close()
	h := open(t, func(c *Config) { c.RetryFor, c.StartFor = time.Hour, 200*time.Millisecond }, n)
	_, err := h.Stat(t.Context(), "/f")
	wantKind(t, err, hbackup.KindUnavailable)
	if hbackup.HintOf(err) == "" || !strings.Contains(err.Error(), n.Listener.Addr().String()) {
		t.Errorf("%v; hint %q", err, hbackup.HintOf(err))
	}
}

// A token stands for the user in the queries and nowhere else.
func TestDelegationToken(t *testing.T) {
	fs := newFakeHDFS()
	n := fs.start(t, func(n *fakeNode) {
		n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
			q := r.URL.Query()
			if q.Get("delegation") != "hunter2+/=" || q.Has("user.name") {
				t.Errorf("%s was asked with %v", op, q)
			}
			if op == "DELETE" {
				refuse(w, 403, "SecurityException", "Failed to obtain user group information: org.apache.hadoop.security.token.SecretManager$InvalidToken: token is expired")
			}
			return op == "DELETE"
		}
		n.data = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				panic(http.ErrAbortHandler)
			}
			return false
		}
	})
	h := open(t, func(c *Config) {
		c.RetryFor, c.Token = 200*time.Millisecond, func() (string, error) { return "hunter2+/=", nil }
	}, n)
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "abc")
	_, getErr := read(t, h, "/d/f", 0)
	wantKind(t, getErr, hbackup.KindUnavailable)
	delErr := h.Remove(t.Context(), "/d/f")
	wantKind(t, delErr, hbackup.KindDenied)
	n.Close()
	_, downErr := h.Stat(t.Context(), "/d/f")
	wantKind(t, downErr, hbackup.KindUnavailable)
	for _, err := range []error{getErr, delErr, downErr} {
		if text := err.Error() + hbackup.HintOf(err); strings.Contains(text, "hunter2") || strings.Contains(text, "delegation=") {
			t.Error(text)
		}
	}
	missing := hbackup.Errorf("read secret", "/token", hbackup.KindDenied, "the file is empty")
	h.cfg.Token = func() (string, error) { return "", missing }
	_, err := h.Stat(t.Context(), "/d/f")
	wantKind(t, err, hbackup.KindDenied)
}

// Where a redirect may not lead.
func TestRedirects(t *testing.T) {
	for to, kind := range map[string]hbackup.Kind{
		"http://dn:9864/webhdfs/v1/f?op=OPEN": hbackup.KindRefused, // from https
		"https://dn/somewhere?webhdfs/v1/":    hbackup.KindUnsupported,
		"https://u:p@dn/webhdfs/v1/f":         hbackup.KindOther,
		"file:///webhdfs/v1/f":                hbackup.KindOther,
		"":                                    hbackup.KindOther,
	} {
		req, err := http.NewRequest(http.MethodGet, "https://nn:9871/webhdfs/v1/f", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp := &http.Response{Request: req, Header: http.Header{}}
		if to != "" {
			resp.Header.Set("Location", to)
		}
		at, err := redirect(req.URL, resp)
		if err == nil || hbackup.KindOf(err) != kind || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v, %v", to, at, err)
		}
	}
}

// A name node that says nothing is left when the context ends, or in time.
func TestSilence(t *testing.T) {
	fs := newFakeHDFS()
	asked := make(chan bool, 10)
	n := fs.start(t, func(n *fakeNode) {
		n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
			asked <- true
			<-r.Context().Done()
			return true
		}
	})
	h := open(t, nil, n)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := h.Stat(ctx, "/f")
	wantKind(t, err, hbackup.KindInterrupted)
	h = open(t, func(c *Config) { c.CallTimeout, c.RetryFor = 50*time.Millisecond, -1 }, n)
	_, err = h.Stat(t.Context(), "/f")
	wantKind(t, err, hbackup.KindTimeout)
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"FileStatus":{"type":"FILE","length":3,"fileId":7,"modificationTime":1}}`))
	f.Add([]byte(`{"boolean":true}`))
	f.Add([]byte(`{"DirectoryListing":{"remainingEntries":0,"partialListing":{"FileStatuses":{"FileStatus":[{"pathSuffix":"a","type":"FILE"},{"pathSuffix":"b/..","type":"DIRECTORY"}]}}}}`))
	f.Add([]byte(`{"RemoteException":{"exception":"A","javaClassName":"b.A$C","message":"x\ny"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if info, err := readStatus(bytes.NewReader(b), "/d/f"); err == nil && (info.Size < 0 || info.Path != "/d/f") {
			t.Errorf("%+v", info)
		}
		infos, left, err := readListing(bytes.NewReader(b), "/d")
		if err == nil && left < 0 {
			t.Errorf("%d left", left)
		}
		for _, i := range infos {
			if i.Path != "/d/"+i.Name || i.Size < 0 || files.CheckPath("", "", i.Path) != nil {
				t.Errorf("%+v", i)
			}
		}
		readBool(bytes.NewReader(b))
		if x, ok := readException(b); ok && x.class() == "" {
			t.Errorf("%+v", x)
		}
	})
}
