package hdfs

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// fake is an HDFS in memory that fails where a test says so. The real one is
// tried in e2e/hdfsstore.
type fake struct {
	mu     sync.Mutex
	nodes  map[string]*node // by path; no "/"
	lastID uint64
	sealed bool

	// before is asked before each call; its error is the call's, and nothing is
	// done. After is asked when the call has been done; its error hides that.
	before, after func(op, path string) error
	// infoOf may change what a closed writer says of its file.
	infoOf func(files.Info) files.Info
}

type node struct {
	id       uint64
	dir      bool
	data     []byte
	modified time.Time
}

func newFake() *fake { return &fake{nodes: map[string]*node{}} }

// openFake gives a store on the fake, in /l.
func openFake(t testing.TB, f *fake) *Store {
	t.Helper()
	s := open(f, storage.Place{Scheme: storage.SchemeHDFS, Host: "nn:8020", Path: "/l"})
	t.Cleanup(func() { s.Close() })
	return s
}

// call does one thing under the lock, with the faults around it.
func (f *fake) call(ctx context.Context, op, p string, do func() error) error {
	if ctx.Err() != nil {
		return hbackup.E(op, "hdfs://nn:8020"+p, hbackup.KindInterrupted, context.Cause(ctx))
	}
	if f.before != nil {
		if err := f.before(op, p); err != nil {
			return err
		}
	}
	f.mu.Lock()
	err := do()
	f.mu.Unlock()
	if err == nil && f.after != nil {
		err = f.after(op, p)
	}
	return err
}

func fail(kind hbackup.Kind, op, p string) error {
	return hbackup.Errorf(op, "hdfs://nn:8020"+p, kind, "the fake says %s", kind)
}

// lookUp gives a node, or how its absence is told: below a file it is a conflict.
func (f *fake) lookUp(op, p string) (*node, error) {
	if n := f.nodes[p]; n != nil {
		return n, nil
	}
	for up := path.Dir(p); up != "/"; up = path.Dir(up) {
		if n := f.nodes[up]; n != nil && !n.dir {
			return nil, fail(hbackup.KindConflict, op, p)
		}
	}
	return nil, fail(hbackup.KindNotFound, op, p)
}

func (f *fake) add(p string, dir bool, data []byte) *node {
	f.lastID++
	f.nodes[p] = &node{id: f.lastID, dir: dir, data: data, modified: time.Now().Truncate(time.Millisecond)}
	return f.nodes[p]
}

func info(p string, n *node) files.Info {
	return files.Info{Name: path.Base(p), Path: p, Size: int64(len(n.data)), Dir: n.dir, Modified: n.modified, ID: n.id}
}

func (f *fake) Stat(ctx context.Context, p string) (i files.Info, err error) {
	err = f.call(ctx, "stat", p, func() error {
		n, err := f.lookUp("stat", p)
		if err == nil {
			i = info(p, n)
		}
		return err
	})
	return i, err
}

func (f *fake) Open(ctx context.Context, p string, offset int64) (r io.ReadCloser, i files.Info, err error) {
	err = f.call(ctx, "open", p, func() error {
		n, err := f.lookUp("open", p)
		switch {
		case err != nil:
			return err
		case n.dir:
			return fail(hbackup.KindConflict, "open", p)
		case offset > int64(len(n.data)):
			return fail(hbackup.KindUsage, "open", p)
		}
		r, i = io.NopCloser(bytes.NewReader(n.data[offset:])), info(p, n)
		return nil
	})
	return r, i, err
}

// ReadDirPage has the name node's order: that of signed bytes.
func (f *fake) ReadDirPage(ctx context.Context, p, after string) (page []files.Info, err error) {
	err = f.call(ctx, "list", p, func() error {
		n, err := f.lookUp("list", p)
		if err == nil && !n.dir {
			err = fail(hbackup.KindConflict, "list", p)
		}
		if err != nil {
			return err
		}
		for q, n := range f.nodes {
			if path.Dir(q) == p && (after == "" || signed(path.Base(q), after) > 0) {
				page = append(page, info(q, n))
			}
		}
		slices.SortFunc(page, func(a, b files.Info) int { return signed(a.Name, b.Name) })
		page = page[:min(len(page), files.PageSize)]
		return nil
	})
	return page, err
}

// signed compares as the name node does.
func signed(a, b string) int {
	return slices.CompareFunc([]byte(a), []byte(b), func(x, y byte) int { return cmp.Compare(int8(x), int8(y)) })
}

func (f *fake) MkdirAll(ctx context.Context, p string) error {
	return f.call(ctx, "mkdir", p, func() error {
		for up := p; up != "/"; up = path.Dir(up) {
			if n := f.nodes[up]; n != nil && !n.dir {
				return fail(hbackup.KindExists, "mkdir", p)
			}
		}
		for up := p; up != "/"; up = path.Dir(up) {
			if f.nodes[up] == nil {
				f.add(up, true, nil)
			}
		}
		return nil
	})
}

func (f *fake) Remove(ctx context.Context, p string) error {
	return f.call(ctx, "remove", p, func() error { return f.remove(p) })
}

func (f *fake) remove(p string) error {
	if _, err := f.lookUp("remove", p); err != nil {
		if hbackup.IsKind(err, hbackup.KindNotFound) {
			return nil
		}
		return err
	}
	for q := range f.nodes {
		if strings.HasPrefix(q, p+"/") {
			return fail(hbackup.KindConflict, "remove", p)
		}
	}
	delete(f.nodes, p)
	return nil
}

func (f *fake) RemoveEmptyDir(ctx context.Context, p string) error {
	return f.call(ctx, "rmdir", p, func() error {
		if n := f.nodes[p]; n == nil || !n.dir {
			return fail(hbackup.KindNotFound, "rmdir", p)
		}
		return f.remove(p)
	})
}

func (f *fake) Create(ctx context.Context, p string) (w writer, err error) {
	err = f.call(ctx, "create", p, func() error {
		if n := f.nodes[path.Dir(p)]; n == nil || !n.dir {
			return fail(hbackup.KindNotFound, "create", p)
		}
		if f.nodes[p] != nil {
			return fail(hbackup.KindExists, "create", p)
		}
		f.add(p, false, nil)
		w = &fakeWriter{f: f, ctx: ctx, path: p}
		return nil
	})
	return w, err
}

func (f *fake) Publish(ctx context.Context, file files.Info, to string, replace bool) error {
	return f.call(ctx, "publish", to, func() error {
		n := f.nodes[file.Path]
		parent, err := f.lookUp("publish", path.Dir(to))
		switch {
		case err != nil:
			return err
		case !parent.dir:
			return fail(hbackup.KindConflict, "publish", to)
		case n == nil || n.id != file.ID:
			return fail(hbackup.KindNotFound, "publish", file.Path)
		}
		switch there := f.nodes[to]; {
		case there != nil && there.dir:
			return fail(hbackup.KindConflict, "publish", to)
		case there != nil && !replace:
			return fail(hbackup.KindExists, "publish", to)
		}
		f.nodes[to] = n
		delete(f.nodes, file.Path)
		return nil
	})
}

func (f *fake) Sealed() bool { return f.sealed }
func (f *fake) Close() error { return nil }

// fakeWriter is a file that is being written: its bytes are there at once.
type fakeWriter struct {
	f    *fake
	ctx  context.Context
	path string
	data []byte
	info files.Info
}

func (w *fakeWriter) Write(p []byte) (int, error) {
	err := w.f.call(w.ctx, "write", w.path, func() error {
		w.data = append(w.data, p...)
		if n := w.f.nodes[w.path]; n != nil {
			n.data = w.data
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close removes the file after an error, as the real one does.
func (w *fakeWriter) Close() error {
	err := w.f.call(w.ctx, "close", w.path, func() error {
		n := w.f.nodes[w.path]
		if n == nil {
			return fail(hbackup.KindNotFound, "close", w.path)
		}
		n.modified = time.Now().Truncate(time.Millisecond)
		w.info = info(w.path, n)
		if w.f.infoOf != nil {
			w.info = w.f.infoOf(w.info)
		}
		return nil
	})
	if err != nil {
		w.Abort()
	}
	return err
}

func (w *fakeWriter) Abort() error { return w.f.Remove(context.WithoutCancel(w.ctx), w.path) }

func (w *fakeWriter) Info() files.Info { return w.info }

// left gives the temporary files.
func (f *fake) left() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.nodes {
		if strings.HasPrefix(p, "/l/"+tempDir+"/") {
			names = append(names, p)
		}
	}
	return names
}
