package backup_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/storage"
	"hbackup/storage/mem"
)

// dying is a store under a process that is killed before one of its calls: what is
// there at that moment is what the next process finds, and to this one the store
// does not answer any more before buried is closed.
type dying struct {
	storage.Store
	held   storage.Holder
	dies   func(n int, kind string, key storage.Key) bool // asked of each call, counted from 1
	next   func() storage.Store                           // what the next process opens
	died   chan struct{}
	buried chan struct{}

	mu    sync.Mutex
	calls int
	after storage.Store
}

// newDying gives a store in memory of which the next process finds a copy.
func newDying(s *mem.Store, dies func(int, string, storage.Key) bool) *dying {
	return newDyingOf(s, func() storage.Store { return s.Clone() }, dies)
}

func newDyingOf(s storage.Store, next func() storage.Store, dies func(int, string, storage.Key) bool) *dying {
	h, _ := storage.HolderOf(s)
	return &dying{Store: s, held: h, dies: dies, next: next, died: make(chan struct{}), buried: make(chan struct{})}
}

// before picks the n-th call, and nth the n-th of a kind whose key holds a part.
func before(n int) func(int, string, storage.Key) bool {
	return func(call int, _ string, _ storage.Key) bool { return call == n }
}

func nth(n int, kind, part string) func(int, string, storage.Key) bool {
	seen := 0
	return func(_ int, k string, key storage.Key) bool {
		if k == kind && strings.Contains(string(key), part) {
			seen++
			return seen == n
		}
		return false
	}
}

func (d *dying) step(kind string, key storage.Key) error {
	d.mu.Lock()
	d.calls++
	if d.after == nil && d.dies(d.calls, kind, key) {
		d.after = d.next()
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
	if err := d.step("put", key); err != nil {
		return storage.Object{}, err
	}
	return d.Store.Put(ctx, key, body, o)
}

func (d *dying) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := d.step("get", key); err != nil {
		return nil, storage.Object{}, err
	}
	return d.Store.Get(ctx, key, r)
}

func (d *dying) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := d.step("stat", key); err != nil {
		return storage.Object{}, err
	}
	return d.Store.Stat(ctx, key)
}

func (d *dying) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := d.step("list", storage.Key(prefix)); err != nil {
			yield(storage.Object{}, err)
			return
		}
		d.Store.List(ctx, prefix, o)(yield)
	}
}

func (d *dying) Delete(ctx context.Context, key storage.Key) error {
	if err := d.step("delete", key); err != nil {
		return err
	}
	return d.Store.Delete(ctx, key)
}

func (d *dying) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := d.step("batch", keys[0]); err != nil {
		return nil, err
	}
	return d.Store.DeleteBatch(ctx, keys)
}

func (d *dying) ServerTime(ctx context.Context) (time.Time, error) {
	if err := d.step("time", ""); err != nil {
		return time.Time{}, err
	}
	return d.Store.ServerTime(ctx)
}

func (d *dying) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := d.step("open", key); err != nil {
		return storage.Ticket{}, err
	}
	return d.held.OpenUpload(ctx, key, stamp)
}

func (d *dying) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, o storage.PutOptions) (storage.Receipt, error) {
	if err := d.step("fill", t.Key); err != nil {
		return storage.Receipt{}, err
	}
	return d.held.FillUpload(ctx, t, body, o)
}

func (d *dying) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := d.step("finish", r.Key); err != nil {
		return storage.Object{}, err
	}
	return d.held.FinishUpload(ctx, r)
}

func (d *dying) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := d.step("drop", t.Key); err != nil {
		return err
	}
	return d.held.DropUpload(ctx, t)
}

func (d *dying) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := d.step("uploads", key); err != nil {
		return nil, err
	}
	return d.held.OpenUploads(ctx, key)
}

func (d *dying) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, d.Store)
}

// kill runs a request until its process dies and gives false if it did not. It goes
// on at the end of the test only, where it does no harm.
func (w *world) kill(t testing.TB, d *dying, id string, opts backup.Options) bool {
	t.Helper()
	return w.killed(t, d, backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Tables: []hbackup.TableName{orders}}, opts)
}

// killFrom is kill for a request that is about a snapshot.
func (w *world) killFrom(t testing.TB, d *dying, id, name string) bool {
	t.Helper()
	return w.killed(t, d, backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", FromSnapshot: name}, backup.Options{})
}

func (w *world) killed(t testing.TB, d *dying, req backup.Request, opts backup.Options) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		backup.Run(ctx, req, backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: d, Name: "main"}, opts)
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
