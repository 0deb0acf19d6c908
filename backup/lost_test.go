package backup_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/storage"
	"hbackup/storage/lease"
	"hbackup/storage/mem"
)

// A run that was taken for dead has lost its lease to another process, which goes
// on from the same snapshot: the loser must not delete it on its way out.
func TestARunThatLostItsLeaseLeavesTheSnapshotToTheOther(t *testing.T) {
	t.Parallel()
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

// A disk that is unmounted in the middle of a run leaves an empty directory in its
// place, into which one could go on writing.
func TestALocationThatIsExchangedUnderTheRunGetsNoImage(t *testing.T) {
	w := newWorld(t)
	place := &exchanged{now: w.store}
	mountPoint := mem.New("backups", mem.WithClock(w.clock))
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") && strings.HasSuffix(path, w.tables[orders].files[2]) {
			place.exchange(mountPoint)
		}
	}}
	if r, err := w.run("r", place); !hbackup.IsKind(err, hbackup.KindConflict) || !strings.Contains(hbackup.HintOf(err), "mounted") {
		t.Fatalf("%+v, %v", r, err)
	}
	for o, err := range mountPoint.List(context.Background(), "prod/", storage.ListOptions{}) {
		if err != nil || strings.HasPrefix(string(o.Key), "prod/images/") || strings.HasPrefix(string(o.Key), "prod/backups/") {
			t.Errorf("%s was written (%v)", o.Key, err)
		}
	}
	w.fs = rootfs.Local()
	w.advance(time.Minute)
	if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
		t.Fatalf("mounted again: %+v, %v", r, err)
	}
	w.images(t)
}

// exchanged is a store whose content can be exchanged as a whole.
type exchanged struct {
	mu  sync.Mutex
	now storage.Store
}

func (e *exchanged) exchange(s storage.Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = s
}

func (e *exchanged) store() storage.Store {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

func (e *exchanged) Location() storage.Location         { return e.store().Location() }
func (e *exchanged) Capabilities() storage.Capabilities { return e.store().Capabilities() }
func (e *exchanged) Close() error                       { return e.store().Close() }

func (e *exchanged) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (storage.Object, error) {
	return e.store().Put(ctx, key, body, o)
}

func (e *exchanged) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	return e.store().Get(ctx, key, r)
}

func (e *exchanged) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	return e.store().Stat(ctx, key)
}

func (e *exchanged) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	return e.store().List(ctx, prefix, o)
}

func (e *exchanged) Delete(ctx context.Context, key storage.Key) error {
	return e.store().Delete(ctx, key)
}

func (e *exchanged) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	return e.store().DeleteBatch(ctx, keys)
}

func (e *exchanged) ServerTime(ctx context.Context) (time.Time, error) {
	return e.store().ServerTime(ctx)
}
