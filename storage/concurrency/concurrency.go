// Package concurrency bounds how many calls of a store are under way at once.
//
// A Get is under way until its body is closed, and a listing while the store works
// for it, not while its caller works with what it gave: so what is listed may be
// read within the loop, even with a bound of one. Who reads one object while he
// writes another to the same store needs two calls at once; nothing in hbackup
// does. Calls that wait come in the order in which they came.
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

// enter waits for a slot.
func (s *Store) enter(ctx context.Context, op string, key storage.Key) error {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return hbackup.E(op, s.Location().At(key), hbackup.KindOther, err)
	}
	return nil
}

func (s *Store) leave() { s.slots.Release(1) }

// Put writes one object.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := s.enter(ctx, "put", key); err != nil {
		return storage.Object{}, err
	}
	defer s.leave()
	return s.Store.Put(ctx, key, body, opts)
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := s.enter(ctx, "get", key); err != nil {
		return nil, storage.Object{}, err
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil {
		s.leave()
		return nil, obj, err
	}
	return &reader{ReadCloser: body, s: s}, obj, nil
}

// reader keeps its slot until it is closed.
type reader struct {
	io.ReadCloser
	s    *Store
	once sync.Once
}

func (r *reader) Close() error {
	defer r.once.Do(r.s.leave)
	return r.ReadCloser.Close()
}

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := s.enter(ctx, "stat", key); err != nil {
		return storage.Object{}, err
	}
	defer s.leave()
	return s.Store.Stat(ctx, key)
}

// List gives the objects under the prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		err := s.enter(ctx, "list", storage.Key(prefix))
		inside := err == nil
		defer func() {
			if inside {
				s.leave()
			}
		}()
		if err != nil {
			yield(storage.Object{}, err)
			return
		}
		for obj, err := range s.Store.List(ctx, prefix, opts) {
			s.leave()
			inside = false
			if !yield(obj, err) || err != nil {
				return
			}
			if err := s.enter(ctx, "list", storage.Key(prefix)); err != nil {
				yield(storage.Object{}, err)
				return
			}
			inside = true
		}
	}
}

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := s.enter(ctx, "delete", key); err != nil {
		return err
	}
	defer s.leave()
	return s.Store.Delete(ctx, key)
}

// DeleteBatch removes many objects.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := s.enter(ctx, "delete", ""); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.Store.DeleteBatch(ctx, keys)
}

// ServerTime gives the store's clock.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx, "ask the time of", ""); err != nil {
		return time.Time{}, err
	}
	defer s.leave()
	return s.Store.ServerTime(ctx)
}
