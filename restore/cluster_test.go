package restore

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hbackup"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// cluster is a stand-in for HBase: a root directory, a master that clones as
// HBase does, and cleaners without patience, which run at every moment that the
// test lets them. Its laws are those of the real servers (see the package
// comment): a file is kept by a complete snapshot that names it or by a back
// reference; an incomplete snapshot directory stops the cleaners.
type cluster struct {
	t    *testing.T
	root string
	fs   rootfs.FS

	mu         sync.Mutex
	version    string
	namespaces map[string]map[string]string
	tables     map[hbackup.TableName]*table
	procedures map[rpc.Nonce]error // outcome by nonce
	clones     int                 // that made a table
	stopped    int                 // passes on which the cleaners had to give up
	orders     []rpc.CloneRequest
	lost       int // that many clones end well and their answer is lost
}

type table struct {
	state   rpc.TableState
	regions []rpc.Region
}

func newCluster(t *testing.T) *cluster {
	root := filepath.Join(tempDir(t), "hbase")
	if err := os.MkdirAll(filepath.Join(root, snapshot.SnapshotsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, root: root, fs: rootfs.Local(), version: "2.6.4", tables: map[hbackup.TableName]*table{}, procedures: map[rpc.Nonce]error{},
		namespaces: map[string]map[string]string{"default": nil, "hbase": nil, "shop": nil}}
}

// tempDir gives a directory in memory where there is one: the tests make
// thousands of files, each of which is synced.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "hbackup-restore-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (c *cluster) Version(context.Context) (rpc.Version, error) { return rpc.ParseVersion(c.version) }

func (c *cluster) Namespaces(context.Context) (out []rpc.Namespace, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.namespaces)) {
		out = append(out, rpc.Namespace{Name: name, Config: c.namespaces[name]})
	}
	return out, nil
}

func (c *cluster) CreateNamespace(_ context.Context, name string, config map[string]string, _ rpc.Nonce) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.namespaces[name]; ok {
		return hbackup.Errorf("create name space", name, hbackup.KindExists, "it exists")
	}
	c.namespaces[name] = config
	return nil
}

func (c *cluster) TableState(_ context.Context, t hbackup.TableName) (rpc.TableState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tb := c.tables[t]
	if tb == nil {
		return "", hbackup.Errorf("table state", t.String(), hbackup.KindNotFound, "no such table")
	}
	state := tb.state
	if state == rpc.TableEnabling {
		tb.state = rpc.TableEnabled
	}
	return state, nil
}

func (c *cluster) Regions(_ context.Context, t hbackup.TableName) ([]rpc.Region, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tb := c.tables[t]; tb != nil {
		return slices.Clone(tb.regions), nil
	}
	return nil, hbackup.Errorf("regions", t.String(), hbackup.KindNotFound, "none")
}

func (c *cluster) DeleteSnapshot(ctx context.Context, name string) error {
	dir := snapshot.SnapshotDir(c.root, name)
	if _, err := os.Stat(filepath.Join(dir, snapshot.InfoFile)); err != nil {
		return nil // the master lists only those with a description
	}
	return os.RemoveAll(dir)
}

func (c *cluster) Clone(ctx context.Context, o rpc.CloneRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
	if err, known := c.procedures[o.Nonce]; known {
		return err
	}
	if c.tables[o.Target] != nil {
		return hbackup.Errorf("clone", o.Target.String(), hbackup.KindExists, "the table exists")
	}
	err := c.make(ctx, o)
	c.procedures[o.Nonce] = err
	if err == nil && c.lost > 0 {
		c.lost--
		return hbackup.Errorf("clone", o.Target.String(), hbackup.KindTimeout, "no answer")
	}
	return err
}

// make is the clone procedure: it verifies the snapshot, then makes links and
// back references.
func (c *cluster) make(ctx context.Context, o rpc.CloneRequest) error {
	m, err := snapshot.Read(ctx, rootfs.Local(), c.root, o.Snapshot)
	if err != nil {
		return err
	}
	if _, ok := c.namespaces[o.Target.Namespace]; !ok {
		return hbackup.Errorf("clone", o.Target.String(), hbackup.KindNotFound, "no name space")
	}
	faults, err := snapshot.Missing(ctx, rootfs.Local(), c.root, m)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return hbackup.Errorf("clone", o.Target.String(), hbackup.KindIncomplete, "%d files are not right: %+v", len(faults), faults[0])
	}
	tb := &table{state: rpc.TableEnabling}
	for i := range m.Regions {
		r := &m.Regions[i]
		place := snapshot.Target{Table: o.Target, Region: snapshot.EncodeRegionName(o.Target, r.StartKey, r.ID, 0), File: "x"}
		if !r.IsMOB() {
			tb.regions = append(tb.regions, rpc.Region{RegionInfo: rpc.RegionInfo{ID: int64(r.ID), StartKey: r.StartKey, EndKey: r.EndKey}})
		}
		for _, ff := range r.Families {
			place.Family = ff.Family
			dir := path.Dir(snapshot.DataPath(c.root, place))
			if r.IsMOB() {
				place.Region = snapshot.MOBRegion(o.Target)
				dir = path.Dir(snapshot.MOBPath(c.root, place))
			}
			for _, f := range ff.Files {
				t, err := snapshot.Resolve(r, ff.Family, f)
				if err != nil {
					return err
				}
				back := filepath.Join(path.Dir(snapshot.ArchivePath(c.root, t)), ".links-"+t.File)
				for _, file := range []string{filepath.Join(dir, t.Link()), filepath.Join(back, string(place.Region)+"."+strings.Replace(o.Target.String(), ":", "=", 1))} {
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(file, nil, 0o644); err != nil {
						return err
					}
				}
			}
		}
	}
	c.tables[o.Target] = tb
	c.clones++
	return nil
}

// clean is one pass of the cleaners with a time to live of zero.
func (c *cluster) clean() {
	named := map[string]bool{}
	dirs, err := os.ReadDir(filepath.Join(c.root, snapshot.SnapshotsDir))
	if err != nil {
		c.t.Error(err)
	}
	for _, d := range dirs {
		m, err := snapshot.Read(context.Background(), rootfs.Local(), c.root, d.Name())
		if err != nil {
			if _, serr := os.Stat(filepath.Join(c.root, snapshot.SnapshotsDir, d.Name(), snapshot.InfoFile)); serr == nil {
				continue // a description without a manifest protects nothing
			}
			c.mu.Lock()
			c.stopped++
			c.mu.Unlock()
			return
		}
		targets, err := snapshot.Targets(m)
		if err != nil {
			c.t.Error(err)
		}
		for t := range targets {
			named[t.File] = true
		}
	}
	filepath.WalkDir(filepath.Join(c.root, "archive"), func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(p, "/.links-") {
			return nil
		}
		if !named[d.Name()] && !c.linked(p) {
			os.Remove(p)
		}
		return nil
	})
}

func (c *cluster) linked(file string) bool {
	links, _ := os.ReadDir(filepath.Join(filepath.Dir(file), ".links-"+filepath.Base(file)))
	return len(links) > 0
}

// checkTable holds a table's files against the image, byte for byte.
func (c *cluster) checkTable(t hbackup.TableName, b *builder) {
	c.t.Helper()
	tb := c.tables[t]
	if tb == nil {
		c.t.Fatalf("table %s was not made", t)
	}
	want := map[storage.Digest]int{}
	for _, data := range b.bytes {
		want[storage.DigestOf(data)]++
	}
	got := map[storage.Digest]int{}
	filepath.WalkDir(c.root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), "=") || !strings.Contains(p, "/"+t.Path()+"/") {
			return nil
		}
		n, err := snapshot.ParseFileName(d.Name())
		if err != nil {
			c.t.Fatal(err)
		}
		family := hbackup.Family(filepath.Base(filepath.Dir(p)))
		data, err := os.ReadFile(snapshot.ArchivePath(c.root, snapshot.Target{Table: n.Table, Region: n.Region, Family: family, File: n.File}))
		if err != nil {
			c.t.Fatalf("the table links to a file that is gone: %v", err)
		}
		got[storage.DigestOf(data)]++
		return nil
	})
	if !maps.Equal(got, want) {
		c.t.Fatalf("the table's files differ from the image's: %v, want %v", got, want)
	}
	var keys []string
	for _, r := range tb.regions {
		keys = append(keys, string(r.StartKey)+"-"+string(r.EndKey))
	}
	var wantKeys []string
	for _, r := range b.manifest.Regions {
		if !r.IsMOB() {
			wantKeys = append(wantKeys, string(r.StartKey)+"-"+string(r.EndKey))
		}
	}
	if !slices.Equal(keys, wantKeys) {
		c.t.Fatalf("regions %q, want %q", keys, wantKeys)
	}
}

// snapshots gives the names of the snapshot directories.
func (c *cluster) snapshots() []string {
	var out []string
	dirs, err := os.ReadDir(filepath.Join(c.root, snapshot.SnapshotsDir))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, d := range dirs {
		out = append(out, d.Name())
	}
	return out
}

// staged counts the files in staging places.
func (c *cluster) staged() int {
	n := 0
	filepath.WalkDir(filepath.Join(c.root, "archive/data", snapshot.StageNamespace), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// gate counts every call to the outside and lets tests decide what becomes of
// each. before runs before the call's effect and may prevent it; after runs after
// it and may hide the success.
type gate struct {
	mu     sync.Mutex
	calls  int
	before func(n int, op string) error
	after  func(n int, op string) error
}

func (g *gate) enter(op string) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if g.before != nil {
		return g.calls, g.before(g.calls, op)
	}
	return g.calls, nil
}

func (g *gate) leave(n int, op string, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.after != nil {
		return g.after(n, op)
	}
	return err
}

// do lets a call through the gate.
func (g *gate) do(op string, call func() error) error {
	n, err := g.enter(op)
	if err != nil {
		return err
	}
	return g.leave(n, op, call())
}

var errInjected = errors.New("injected")

// gatedFS, gatedMaster and gatedStore put a gate before everything.
type gatedFS struct {
	rootfs.FS
	g *gate
}

func (f gatedFS) Stat(ctx context.Context, p string) (i rootfs.Info, err error) {
	err = f.g.do("stat "+p, func() error { i, err = f.FS.Stat(ctx, p); return err })
	return i, err
}

func (f gatedFS) Open(ctx context.Context, p string, off int64) (r io.ReadCloser, i rootfs.Info, err error) {
	err = f.g.do("open "+p, func() error { r, i, err = f.FS.Open(ctx, p, off); return err })
	return r, i, err
}

func (f gatedFS) ReadDir(ctx context.Context, p string) (i []rootfs.Info, err error) {
	err = f.g.do("list "+p, func() error { i, err = f.FS.ReadDir(ctx, p); return err })
	return i, err
}

func (f gatedFS) Create(ctx context.Context, p string) (w rootfs.Writer, err error) {
	err = f.g.do("create "+p, func() error { w, err = f.FS.Create(ctx, p); return err })
	if err != nil {
		return nil, err
	}
	return gatedWriter{w, f.g, p}, nil
}

func (f gatedFS) Publish(ctx context.Context, from, to string) error {
	return f.g.do("publish "+to, func() error { return f.FS.Publish(ctx, from, to) })
}

func (f gatedFS) MkdirAll(ctx context.Context, p string) error {
	return f.g.do("mkdir "+p, func() error { return f.FS.MkdirAll(ctx, p) })
}

func (f gatedFS) Remove(ctx context.Context, p string) error {
	return f.g.do("remove "+p, func() error { return f.FS.Remove(ctx, p) })
}

func (f gatedFS) RemoveAll(ctx context.Context, p string) error {
	return f.g.do("remove tree "+p, func() error { return f.FS.RemoveAll(ctx, p) })
}

type gatedWriter struct {
	w rootfs.Writer
	g *gate
	p string
}

func (w gatedWriter) Write(b []byte) (n int, err error) {
	err = w.g.do("write "+w.p, func() error { n, err = w.w.Write(b); return err })
	return n, err
}
func (w gatedWriter) Close() error { return w.g.do("close "+w.p, w.w.Close) }
func (w gatedWriter) Abort() error { return w.g.do("abort "+w.p, w.w.Abort) }

type gatedMaster struct {
	m Master
	g *gate
}

func (m gatedMaster) Version(ctx context.Context) (v rpc.Version, err error) {
	err = m.g.do("version", func() error { v, err = m.m.Version(ctx); return err })
	return v, err
}

func (m gatedMaster) Namespaces(ctx context.Context) (out []rpc.Namespace, err error) {
	err = m.g.do("namespaces", func() error { out, err = m.m.Namespaces(ctx); return err })
	return out, err
}

func (m gatedMaster) CreateNamespace(ctx context.Context, name string, c map[string]string, n rpc.Nonce) error {
	return m.g.do("create namespace", func() error { return m.m.CreateNamespace(ctx, name, c, n) })
}

func (m gatedMaster) TableState(ctx context.Context, t hbackup.TableName) (s rpc.TableState, err error) {
	err = m.g.do("table state", func() error { s, err = m.m.TableState(ctx, t); return err })
	return s, err
}

func (m gatedMaster) Regions(ctx context.Context, t hbackup.TableName) (out []rpc.Region, err error) {
	err = m.g.do("regions", func() error { out, err = m.m.Regions(ctx, t); return err })
	return out, err
}

func (m gatedMaster) Clone(ctx context.Context, c rpc.CloneRequest) error {
	return m.g.do("clone", func() error { return m.m.Clone(ctx, c) })
}

func (m gatedMaster) DeleteSnapshot(ctx context.Context, name string) error {
	return m.g.do("delete snapshot", func() error { return m.m.DeleteSnapshot(ctx, name) })
}
