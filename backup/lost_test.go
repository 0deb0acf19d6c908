package backup_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/storage/lease"
)

// A run that was taken for dead has lost its lease to another process, which goes
// on from the same snapshot: the loser must not delete it on its way out.
func TestARunThatLostItsLeaseLeavesTheSnapshotToTheOther(t *testing.T) {
	w := newWorld(t)
	w.fs = &stealingFS{FS: w.fs, steal: func() {
		jobs := w.jobs(t)
		if len(jobs) != 1 {
			t.Errorf("jobs: %v", jobs)
			return
		}
		w.advance(time.Minute)
		if _, err := lease.Acquire(context.Background(), w.folder(), catalog.RunLease(jobs[0].Backup), "the other", lease.MinTTL); err != nil {
			t.Error(err)
		}
	}}
	_, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Files: 2, LeaseTTL: lease.MinTTL})
	if !errors.Is(err, lease.ErrLost) {
		t.Fatalf("got %v", err)
	}
	if n := len(w.images(t)); n != 0 {
		t.Errorf("%d images", n)
	}
	if left := w.names(); len(left) != 1 {
		t.Fatalf("the snapshot that the other works with is gone: %v", left)
	}
	// When the other has died, too, the same request goes on with that snapshot.
	w.fs = rootfs.Local()
	w.advance(time.Minute)
	if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
		t.Fatalf("again: %+v, %v", r, err)
	}
	if n, left := len(w.images(t)), w.names(); n != 1 || len(left) != 0 {
		t.Errorf("%d images, snapshots left: %v", n, left)
	}
}

// stealingFS calls steal when the first store file is opened, and opens none
// before its context is over.
type stealingFS struct {
	rootfs.FS
	once  sync.Once
	steal func()
}

func (f *stealingFS) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, rootfs.Info, error) {
	if strings.Contains(path, "/data/ns/orders/") {
		f.once.Do(f.steal)
		<-ctx.Done()
	}
	return f.FS.Open(ctx, path, offset)
}
