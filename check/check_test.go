package check

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
	"hbackup/storage/readonly"
)

// master is HBase as far as check asks it.
type master struct{ snapshots []string }

func (m master) ClusterID() string                            { return "the-cluster" }
func (m master) Version(context.Context) (rpc.Version, error) { return rpc.Version{}, nil }
func (m master) Snapshots(context.Context) ([]rpc.SnapshotInfo, error) {
	var all []rpc.SnapshotInfo
	for _, name := range m.snapshots {
		all = append(all, rpc.SnapshotInfo{Name: name})
	}
	return all, nil
}

// rootDir makes HBase's root directory with these files in it.
func rootDir(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range append(files, "hbase.id") {
		f = filepath.Join(root, f)
		if err := os.MkdirAll(path.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// look runs check on a cluster that is well but for what the test has spoilt.
func look(t *testing.T, s storage.Store, m master, root string) map[string]Item {
	t.Helper()
	items := Run(t.Context(), Cluster{Name: "prod", Master: m, FS: rootfs.Local(), Root: root,
		Target: Location{Name: "main", Location: s, Place: catalog.Place{Name: "main", Store: prefixed.New(s, "prod")}}})
	out := map[string]Item{}
	for _, i := range items {
		if _, twice := out[i.Name]; twice {
			t.Errorf("%s is there twice", i.Name)
		}
		if i.Status != OK && (i.Detail == "" || i.Status == Failed && i.Err == nil) {
			t.Errorf("%+v says nothing", i)
		}
		out[i.Name] = i
	}
	return out
}

// overwriting is a store that knows no create-if-absent.
type overwriting struct{ storage.Store }

func (o overwriting) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	opts.IfAbsent = false
	return o.Store.Put(ctx, key, body, opts)
}

func TestVerdicts(t *testing.T) {
	script := func(s string) func(storage.Store) storage.Store {
		return func(inner storage.Store) storage.Store {
			f, err := faulty.New(inner, s)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	for name, c := range map[string]struct {
		object    storage.Key // that lies there
		store     func(storage.Store) storage.Store
		snapshots []string
		files     []string // in HBase's root
		noRoot    bool
		item      string
		status    Status
		says      string // in detail or hint
		absent    string // item that must not be there
	}{
		"all well":          {item: "target main writes", status: OK, says: "one winner"},
		"no backup yet":     {item: "backups", status: Warning, says: "make one"},
		"other data":        {object: "photos/cat.jpg", item: "target main", status: Failed, says: "photos/cat.jpg"},
		"read-only":         {store: func(s storage.Store) storage.Store { return readonly.New(s) }, item: "target main writes", status: Failed, says: "read"},
		"no conditions":     {store: func(s storage.Store) storage.Store { return overwriting{s} }, item: "target main writes", status: Failed, says: "create-if-absent"},
		"bytes change":      {store: script("get[probe/]#*:flip"), item: "target main writes", status: Failed, says: "digest"},
		"an answer is lost": {store: script("put[probe/]#1:lost"), item: "target main writes", status: Failed},
		"no right to list":  {store: script("list#*:fail=denied"), item: "backups in main", status: Failed, absent: "backups"},
		"no time":           {store: script("time#*:fail"), item: "target main clock", status: Failed},
		"a snapshot left":   {snapshots: []string{"mine", "hbackup.prod.x.0000"}, item: "snapshots", status: Warning, says: "hbackup.prod.x.0000"},
		"others' snapshots": {snapshots: []string{"mine"}, item: "snapshots", status: OK},
		"a half snapshot":   {files: []string{".hbase-snapshot/hbackup-restore.r.1/data.manifest"}, item: "cleaners", status: Warning, says: "hbackup-restore.r.1"},
		"no root":           {noRoot: true, item: "root directory", status: Failed, says: "hbase.rootdir"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := mem.New("main")
			if c.object != "" {
				if _, err := storage.PutBytes(t.Context(), inner, c.object, []byte("x"), true); err != nil {
					t.Fatal(err)
				}
			}
			var s storage.Store = inner
			if c.store != nil {
				s = c.store(inner)
			}
			root := rootDir(t, c.files...)
			if c.noRoot {
				root += "/nowhere"
			}
			items := look(t, s, master{c.snapshots}, root)
			if i := items[c.item]; i.Status != c.status || !strings.Contains(i.Detail+i.Hint, c.says) {
				t.Errorf("%s is %+v; all: %+v", c.item, i, items)
			}
			if _, there := items[c.absent]; c.absent != "" && there {
				t.Errorf("%s is there: %+v", c.absent, items[c.absent])
			}
			for o, err := range inner.List(t.Context(), "", storage.ListOptions{}) {
				if err != nil || o.Key != c.object {
					t.Errorf("check left %s (%v)", o.Key, err)
				}
			}
		})
	}
}

func TestWrongClock(t *testing.T) {
	s := mem.New("main", mem.WithClock(func() time.Time { return time.Now().Add(20 * time.Minute) }))
	if i := look(t, s, master{}, rootDir(t))["target main clock"]; i.Status != Warning || !strings.Contains(i.Hint, "clock") {
		t.Errorf("%+v", i)
	}
}

func TestWorst(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for _, c := range []struct {
		items []Item
		want  Status
		err   error
	}{
		{nil, OK, nil},
		{[]Item{{Status: OK}, {Status: Warning}}, Warning, nil},
		{[]Item{{Status: Warning}, {Status: Failed, Err: one}, {Status: Failed, Err: two}, {Status: OK}}, Failed, one},
	} {
		if got, err := Worst(c.items); got != c.want || err != c.err {
			t.Errorf("%+v: %s, %v", c.items, got, err)
		}
	}
}
