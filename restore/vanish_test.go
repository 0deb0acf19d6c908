package restore

import (
	"context"
	"os"
	"path"
	"testing"

	"hbackup/hbase/rootfs"
)

// emptied stands for HBase's cleaners: it removes the directory of every file
// just before the file is created, once.
type emptied struct {
	rootfs.FS
	done map[string]bool
}

func (e emptied) Create(ctx context.Context, p string) (rootfs.Writer, error) {
	if dir := path.Dir(p); !e.done[dir] {
		e.done[dir] = true
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return e.FS.Create(ctx, p)
}

func TestADirectoryThatTheCleanersTakeIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	e := emptied{w.target().FS, map[string]bool{}}
	r := &run{target: Target{FS: e, Root: w.c.root}}
	at := path.Join(w.c.root, "archive/data/hbk/x/f/0123")
	if err := os.MkdirAll(path.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := r.create(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); err != nil || !e.done[path.Dir(at)] {
		t.Errorf("%v", err)
	}
}
