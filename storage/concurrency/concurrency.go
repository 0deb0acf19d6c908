// Package concurrency bounds how many calls of a store are under way at once.
//
// A Get is under way until its body is closed, and a listing while the store works
// for it, not while its caller works with what it gave: so what is listed may be
// read within the loop, even with a bound of one. Who reads one object while he
// writes another to the same store needs two calls at once; nothing in hbackup
// does. Calls that wait go on in the order in which they came, and urgent ones do
// not wait.
package concurrency

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"hbackup"
	"hbackup/storage"
)

// Store lets a bounded number of calls through.
type Store struct {
	storage.Store
	slots *semaphore.Weighted
}

var _ storage.Store = (*Store)(nil)

// New wraps inner for at most n calls at once, which is 1 at least.
func New(inner storage.Store, n int) *Store {
	return &Store{Store: inner, slots: semaphore.NewWeighted(int64(max(n, 1)))}
}

// enter waits for a slot and gives what gives it back, which may be called again
// and after an error.
func (s *Store) enter(ctx context.Context, op string, key storage.Key) (leave func(), err error) {
	nothing := func() {}
	if storage.IsUrgent(ctx) {
		return nothing, nil
	}
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return nothing, hbackup.E(op, s.Location().At(key), hbackup.KindOther, err)
	}
	return sync.OnceFunc(func() { s.slots.Release(1) }), nil
}

// Put writes one object.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	leave, err := s.enter(ctx, "put", key)
	if err != nil {
		return storage.Object{}, err
	}
	defer leave()
	return s.Store.Put(ctx, key, body, opts)
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	leave, err := s.enter(ctx, "get", key)
	if err != nil {
		return nil, storage.Object{}, err
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil {
		leave()
		return nil, obj, err
	}
	return &reader{body, leave}, obj, nil
}

// reader keeps its slot until it is closed.
type reader struct {
	io.ReadCloser
	leave func()
}

func (r *reader) Close() error {
	defer r.leave()
	return r.ReadCloser.Close()
}

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	leave, err := s.enter(ctx, "stat", key)
	if err != nil {
		return storage.Object{}, err
	}
	defer leave()
	return s.Store.Stat(ctx, key)
}

// List gives the objects under the prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		leave, err := s.enter(ctx, "list", storage.Key(prefix))
		if err != nil {
			yield(storage.Object{}, err)
			return
		}
		defer func() { leave() }()
		for obj, err := range s.Store.List(ctx, prefix, opts) {
			leave()
			if !yield(obj, err) || err != nil {
				return
			}
			if leave, err = s.enter(ctx, "list", storage.Key(prefix)); err != nil {
				yield(storage.Object{}, err)
				return
			}
		}
	}
}

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	leave, err := s.enter(ctx, "delete", key)
	if err != nil {
		return err
	}
	defer leave()
	return s.Store.Delete(ctx, key)
}

// DeleteBatch removes many objects.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	leave, err := s.enter(ctx, "delete", "")
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.Store.DeleteBatch(ctx, keys)
}

// ServerTime gives the store's clock.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	leave, err := s.enter(ctx, "ask the time of", "")
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	return s.Store.ServerTime(ctx)
}
