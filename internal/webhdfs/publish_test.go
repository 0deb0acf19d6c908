package webhdfs

import (
	"fmt"
	"net/http"
	"path"
	"sync/atomic"
	"testing"

	"hbackup"
)

// What is there when a file is published under /d/to.
func TestPublish(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		for _, replace := range []bool{false, true} {
			for there, kind := range map[string]hbackup.Kind{
				"nothing": hbackup.KindOther, "file": hbackup.KindExists, "dir": hbackup.KindConflict, "no parent": hbackup.KindNotFound,
			} {
				t.Run(fmt.Sprintf("gateway %v, replace %v, %s", gateway, replace, there), func(t *testing.T) {
					fs := newFakeHDFS()
					h := open(t, nil, fs.start(t, func(n *fakeNode) { n.gateway = gateway }))
					mkdir(t, h, "/d")
					mkdir(t, h, "/t")
					info := write(t, h, "/t/x", "mine")
					to, want := "/d/to", "mine"
					switch there {
					case "file":
						fs.add(to, false, []byte("other"))
						switch {
						case replace && gateway:
							kind, want = hbackup.KindUnsupported, "other"
						case replace:
							kind = hbackup.KindOther
						default:
							want = "other"
						}
					case "dir":
						fs.add(to, true, nil)
						want = ""
					case "no parent":
						to, want = "/e/to", ""
					}
					err := h.Publish(t.Context(), info, to, replace)
					if hbackup.KindOf(err) != kind || (err == nil) != (kind == hbackup.KindOther) {
						t.Errorf("%v (kind %q), want kind %q", err, hbackup.KindOf(err), kind)
					}
					if f := fs.nodes[to]; want != "" && (f == nil || string(f.data) != want) || want == "" && f != nil && !f.dir {
						t.Errorf("there is %+v, want %q", f, want)
					}
					if moved := fs.nodes["/t/x"] == nil; moved != (err == nil) {
						t.Errorf("the temporary file is gone: %v", moved)
					}
				})
			}
		}
	}
}

// A directory comes into being behind the look: the gateway moves the file into it,
// and it is taken out.
func TestPublishIntoADirectory(t *testing.T) {
	fs := newFakeHDFS()
	n := fs.start(t, func(n *fakeNode) { n.gateway = true })
	h := open(t, nil, n)
	mkdir(t, h, "/d")
	info := write(t, h, "/d/x", "mine")
	n.before = func(op string, w http.ResponseWriter, r *http.Request) bool {
		if op == "RENAME" {
			fs.mu.Lock()
			fs.add("/d/to", true, nil)
			fs.mu.Unlock()
		}
		return false
	}
	wantKind(t, h.Publish(t.Context(), info, "/d/to", false), hbackup.KindConflict)
	if f := fs.nodes["/d/to/x"]; f != nil {
		t.Error("the file is in the directory")
	}
}

// The answer to the rename is lost, when it was done or before it was, and the
// world goes on.
func TestPublishLosesAnswers(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		for name, c := range map[string]struct {
			done  bool
			since func(fs *fakeHDFS) // what happens until the look
			kind  hbackup.Kind
		}{
			"done":                 {done: true},
			"not done":             {},
			"done, and gone since": {done: true, since: func(fs *fakeHDFS) { delete(fs.nodes, "/d/to") }, kind: hbackup.KindUnavailable},
			"taken by another":     {since: func(fs *fakeHDFS) { fs.add("/d/to", false, []byte("other")) }, kind: hbackup.KindExists},
			"taken by a directory": {since: func(fs *fakeHDFS) { fs.add("/d/to", true, nil) }, kind: hbackup.KindConflict},
			"swept":                {since: func(fs *fakeHDFS) { delete(fs.nodes, "/t/x") }, kind: hbackup.KindUnavailable},
		} {
			t.Run(fmt.Sprintf("gateway %v, %s", gateway, name), func(t *testing.T) {
				fs := newFakeHDFS()
				n := fs.start(t, func(n *fakeNode) { n.gateway = gateway })
				h := open(t, nil, n)
				mkdir(t, h, "/d")
				mkdir(t, h, "/t")
				info := write(t, h, "/t/x", "mine")
				var losses atomic.Int32
				lose := func(op string, w http.ResponseWriter, r *http.Request) bool {
					if op != "RENAME" || losses.Load() > 0 {
						return false
					}
					losses.Add(1)
					if c.since != nil {
						fs.mu.Lock()
						c.since(fs)
						fs.mu.Unlock()
					}
					panic(http.ErrAbortHandler)
				}
				if c.done {
					n.after = lose
				} else {
					n.before = lose
				}
				err := h.Publish(t.Context(), info, "/d/to", false)
				if hbackup.KindOf(err) != c.kind || (err == nil) != (c.kind == hbackup.KindOther) || losses.Load() != 1 {
					t.Errorf("%v (kind %q), want kind %q", err, hbackup.KindOf(err), c.kind)
				}
				if f := fs.nodes["/d/to"]; err == nil && (f == nil || string(f.data) != "mine") || c.kind == hbackup.KindExists && string(f.data) != "other" {
					t.Errorf("there is %+v", f)
				}
				for p := range fs.nodes {
					if path.Dir(p) == "/d/to" {
						t.Errorf("%s is in the directory", p)
					}
				}
			})
		}
	}
}
