package webhdfs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// cutAfter serves the bytes of /d/f, but of each answer only so many.
func cutAfter(fs *fakeHDFS, bytes int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		hidden := &cutting{ResponseWriter: w, left: bytes}
		(&fakeNode{fs: fs, gateway: r.Header.Get("Gateway") != ""}).serveData(hidden, r, "OPEN", strings.TrimPrefix(r.URL.Path, prefix))
		return true
	}
}

type cutting struct {
	http.ResponseWriter
	left int
}

// WriteHeader lets errors pass whole.
func (c *cutting) WriteHeader(status int) {
	if status != http.StatusOK {
		c.left = 1 << 20
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *cutting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// A read goes on where the connection broke.
func TestReadGoesOn(t *testing.T) {
	fs := newFakeHDFS()
	n := fs.start(t)
	h := open(t, nil, n)
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "0123456789")
	n.data = cutAfter(fs, 4)
	if got, err := read(t, h, "/d/f", 1); err != nil || got != "123456789" {
		t.Errorf("%q, %v", got, err)
	}
	// Another file takes the path: the bytes are those of the first, as it is asked for
	// by number; and when that is gone, there is an error.
	for _, gone := range []bool{false, true} {
		r, info, err := h.Open(t.Context(), "/d/f", 0)
		if err != nil || info.Size != 10 {
			t.Fatalf("%+v, %v", info, err)
		}
		var first [2]byte
		if _, err := io.ReadFull(r, first[:]); err != nil {
			t.Fatal(err)
		}
		fs.mu.Lock()
		old := fs.nodes["/d/f"]
		if fs.add("/d/f", false, []byte("abcdefghij")); !gone {
			fs.nodes["/t"] = old
		}
		fs.mu.Unlock()
		rest, err := io.ReadAll(r)
		if gone {
			wantKind(t, err, hbackup.KindConflict)
			if !errors.Is(err, files.ErrReplaced) {
				t.Errorf("%v", err)
			}
		} else if err != nil || string(rest) != "23456789" {
			t.Errorf("%q, %v", rest, err)
		}
		r.Close()
	}
}

// A gateway tells neither lengths nor numbers.
func TestReadFromAGateway(t *testing.T) {
	fs := newFakeHDFS()
	n := fs.start(t, func(n *fakeNode) { n.gateway = true })
	h := open(t, func(c *Config) { c.RetryFor = time.Second }, n)
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "0123456789")
	var cuts atomic.Int32
	n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
		if op != "OPEN" {
			return false
		}
		if cuts.Add(1) == 3 {
			fs.mu.Lock()
			fs.add("/d/f", false, []byte("ABCDEFGHIJK"))
			fs.mu.Unlock()
		}
		r.Header.Set("Gateway", "1")
		return cutAfter(fs, 4)(w, r)
	}
	got, err := read(t, h, "/d/f", 0)
	wantKind(t, err, hbackup.KindConflict)
	if !errors.Is(err, files.ErrReplaced) || got != "01234567" {
		t.Errorf("%q, %v", got, err)
	}
	// An answer that ends in good order before the file does.
	n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
		if op == "OPEN" {
			w.(http.Flusher).Flush() // so that no length is said
		}
		return op == "OPEN"
	}
	h.waiter.RetryFor = 250 * time.Millisecond
	_, err = read(t, h, "/d/f", 10)
	wantKind(t, err, hbackup.KindIncomplete)
}

// A file that somebody is writing is longer than the name node knows.
func TestOpenForWriting(t *testing.T) {
	for _, known := range []string{"", "abc"} {
		fs := newFakeHDFS()
		n := fs.start(t)
		h := open(t, nil, n)
		mkdir(t, h, "/d")
		write(t, h, "/d/f", known)
		n.data = func(w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, known+"def")
			return true
		}
		_, err := read(t, h, "/d/f", 0)
		wantKind(t, err, hbackup.KindUnsupported)
		if !errors.Is(err, files.ErrOpenForWriting) {
			t.Errorf("%v", err)
		}
	}
}

// A reader whose context ends, and one that waits for bytes too long.
func TestReadStops(t *testing.T) {
	fs := newFakeHDFS()
	n := fs.start(t)
	h := open(t, func(c *Config) { c.DataTimeout, c.RetryFor = 100*time.Millisecond, -1 }, n)
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "0123456789")
	n.data = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "10")
		io.WriteString(w, "012")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	got, err := read(t, h, "/d/f", 0)
	wantKind(t, err, hbackup.KindTimeout)
	if got != "012" {
		t.Errorf("%q", got)
	}
	h.cfg.DataTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := h.Open(ctx, "/d/f", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = r.Read(make([]byte, 1))
	wantKind(t, err, hbackup.KindInterrupted)
}

// What goes wrong with a write: there is an error, and no file is left.
func TestWriteFails(t *testing.T) {
	for name, c := range map[string]struct {
		data func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request)
		kind hbackup.Kind
	}{
		"refused": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // or the connection may break before the answer is seen
			refuse(w, 403, "AccessControlException", "Permission denied: user=u")
		}, hbackup.KindDenied},
		"no room": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			refuse(w, 403, "DSQuotaExceededException", "The DiskSpace quota is exceeded")
		}, hbackup.KindNoSpace},
		"the answer is lost": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fs.mu.Lock()
			fs.add("/d/f", false, b)
			fs.mu.Unlock()
			panic(http.ErrAbortHandler)
		}, hbackup.KindUnavailable},
		"whole too soon": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			fs.mu.Lock()
			fs.add("/d/f", false, []byte("012"))
			fs.mu.Unlock()
			w.WriteHeader(http.StatusCreated)
		}, hbackup.KindUnavailable},
		"a byte is missing": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fs.mu.Lock()
			fs.add("/d/f", false, b[1:])
			fs.mu.Unlock()
			w.WriteHeader(http.StatusCreated)
		}, hbackup.KindCorrupt},
		"a page": {func(t *testing.T, fs *fakeHDFS, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusNoContent)
		}, hbackup.KindUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			fs := newFakeHDFS()
			n := fs.start(t)
			n.data = func(w http.ResponseWriter, r *http.Request) bool { c.data(t, fs, w, r); return true }
			h := open(t, nil, n)
			mkdir(t, h, "/d")
			w, err := h.Create(t.Context(), "/d/f")
			if err != nil {
				t.Fatal(err)
			}
			_, writeErr := w.Write(make([]byte, 32<<20)) // more than the connection holds
			err = w.Close()
			wantKind(t, err, c.kind)
			if writeErr != nil {
				wantKind(t, writeErr, c.kind)
			}
			if fs.nodes["/d/f"] != nil {
				t.Error("the file is left")
			}
			if w.Abort() == nil || w.Close() == nil {
				t.Error("it ends twice")
			}
		})
	}
}

// A file that was there before is not touched by the writer that could not make it.
func TestCreateOverAFile(t *testing.T) {
	fs := newFakeHDFS()
	h := open(t, nil, fs.start(t))
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "first")
	w, err := h.Create(t.Context(), "/d/f")
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("second"))
	wantKind(t, w.Close(), hbackup.KindExists)
	if got, err := read(t, h, "/d/f", 0); err != nil || got != "first" {
		t.Errorf("%q, %v", got, err)
	}
}

// A writer that is given up, or whose context ends, leaves no file, though the data
// node takes what it has for the whole.
func TestAbort(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		fs := newFakeHDFS()
		made := make(chan bool, 1)
		n := fs.start(t)
		n.data = func(w http.ResponseWriter, r *http.Request) bool {
			io.ReadFull(r.Body, make([]byte, 1))
			fs.mu.Lock()
			fs.add("/d/f", false, []byte("0"))
			fs.mu.Unlock()
			made <- true
			io.Copy(io.Discard, r.Body)
			return true
		}
		h := open(t, nil, n)
		mkdir(t, h, "/d")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := h.Create(ctx, "/d/f")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		<-made
		if cancelled {
			cancel()
			wantKind(t, w.Close(), hbackup.KindInterrupted)
		} else if err := w.Abort(); err != nil {
			t.Error(err)
		}
		if fs.nodes["/d/f"] != nil {
			t.Error("the file is left")
		}
	}
}

// A data node that cannot be reached is passed over: the name node gives another.
func TestDeadDataNode(t *testing.T) {
	fs := newFakeHDFS()
	dead := fs.start(t)
	dead.Close()
	var redirects atomic.Int32
	n := fs.start(t, func(n *fakeNode) {
		n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
			if op != "CREATE" && op != "OPEN" {
				return false
			}
			if redirects.Add(1)%2 == 0 {
				return false
			}
			w.Header().Set("Location", dead.URL+r.URL.Path+"?op="+op)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}
	})
	h := open(t, nil, n)
	mkdir(t, h, "/d")
	write(t, h, "/d/f", "abc")
	if got, err := read(t, h, "/d/f", 0); err != nil || got != "abc" || redirects.Load() != 4 {
		t.Errorf("%q, %v after %d redirects", got, err, redirects.Load())
	}
}
