package backup_test

import (
	"context"
	"io"
	"iter"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/storage"
	"hbackup/storage/mem"
)

// dying is a store under a process that is killed before its n-th call, or before
// the first one of a kind: what is there at that moment is kept for the next
// process, and to this one the store does not answer any more before buried is
// closed.
type dying struct {
	*mem.Store
	n      int
	kind   string
	died   chan struct{}
	buried chan struct{}

	mu    sync.Mutex
	calls int
	after *mem.Store // what the next process finds
}

func newDying(s *mem.Store, n int, kind string) *dying {
	return &dying{Store: s, n: n, kind: kind, died: make(chan struct{}), buried: make(chan struct{})}
}

func (d *dying) step(kind string) error {
	d.mu.Lock()
	d.calls++
	if d.after == nil && (d.calls == d.n || kind == d.kind) {
		d.after = d.Store.Clone()
		close(d.died)
	}
	dead := d.after != nil
	d.mu.Unlock()
	if dead {
		<-d.buried
		return hbackup.Errorf("reach", string(d.Location()), hbackup.KindInterrupted, "this process is dead")
	}
	return nil
}

func (d *dying) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (storage.Object, error) {
	if err := d.step("put"); err != nil {
		return storage.Object{}, err
	}
	return d.Store.Put(ctx, key, body, o)
}

func (d *dying) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := d.step("get"); err != nil {
		return nil, storage.Object{}, err
	}
	return d.Store.Get(ctx, key, r)
}

func (d *dying) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := d.step("stat"); err != nil {
		return storage.Object{}, err
	}
	return d.Store.Stat(ctx, key)
}

func (d *dying) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := d.step("list"); err != nil {
			yield(storage.Object{}, err)
			return
		}
		d.Store.List(ctx, prefix, o)(yield)
	}
}

func (d *dying) Delete(ctx context.Context, key storage.Key) error {
	if err := d.step("delete"); err != nil {
		return err
	}
	return d.Store.Delete(ctx, key)
}

func (d *dying) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := d.step("batch"); err != nil {
		return nil, err
	}
	return d.Store.DeleteBatch(ctx, keys)
}

func (d *dying) ServerTime(ctx context.Context) (time.Time, error) {
	if err := d.step("time"); err != nil {
		return time.Time{}, err
	}
	return d.Store.ServerTime(ctx)
}

func (d *dying) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := d.step("open"); err != nil {
		return storage.Ticket{}, err
	}
	return d.Store.OpenUpload(ctx, key, stamp)
}

func (d *dying) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, o storage.PutOptions) (storage.Receipt, error) {
	if err := d.step("fill"); err != nil {
		return storage.Receipt{}, err
	}
	return d.Store.FillUpload(ctx, t, body, o)
}

func (d *dying) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := d.step("finish"); err != nil {
		return storage.Object{}, err
	}
	return d.Store.FinishUpload(ctx, r)
}

func (d *dying) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := d.step("drop"); err != nil {
		return err
	}
	return d.Store.DropUpload(ctx, t)
}

func (d *dying) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := d.step("uploads"); err != nil {
		return nil, err
	}
	return d.Store.OpenUploads(ctx, key)
}

// kill runs a request until its process dies and gives false if it did not. It goes
// on at the end of the test only, where it does no harm.
func (w *world) kill(t testing.TB, d *dying, id string, tables ...hbackup.TableName) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		backup.Run(ctx, backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Tables: tables},
			backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: d, Name: "main"}, backup.Options{Files: 2})
	}()
	t.Cleanup(func() {
		cancel()
		close(d.buried)
		<-ended
	})
	select {
	case <-d.died:
		w.store = d.after
		return true
	case <-ended:
		return false
	}
}
