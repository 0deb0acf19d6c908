// Package metered counts what is asked of a store: for progress, metrics,
// benchmarks and for tests that bound the number of requests.
package metered

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Store counts and passes everything on.
type Store struct {
	storage.Store

	mu    sync.Mutex
	count Counts
}

var _ storage.Store = (*Store)(nil)

// New wraps inner with all counters at zero.
func New(inner storage.Store) *Store { return &Store{Store: inner} }

// Counts gives the counters as they are now.
func (s *Store) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count.clone()
}

// note changes the counters.
func (s *Store) note(change func(*Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.count)
}

// done counts a call that ended; the pointer is one into s.count.
func (s *Store) done(op *Op, started time.Time, err error) {
	s.note(func(c *Counts) {
		op.Calls++
		op.Time += time.Since(started)
		c.fail(op, err)
	})
}

// Put counts the bytes that were read from the body.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	started := time.Now()
	obj, err := s.Store.Put(ctx, key, &in{body, s}, opts)
	s.done(&s.count.Put, started, err)
	return obj, err
}

// Get counts the bytes that the reader gives, and its error.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	started := time.Now()
	body, obj, err := s.Store.Get(ctx, key, r)
	s.done(&s.count.Get, started, err)
	if err != nil {
		return nil, obj, err
	}
	s.note(func(c *Counts) { c.OpenReaders++ })
	return &out{ReadCloser: body, s: s}, obj, nil
}

// Stat counts a call.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	started := time.Now()
	obj, err := s.Store.Stat(ctx, key)
	s.done(&s.count.Stat, started, err)
	return obj, err
}

// List counts a call when the listing is walked, and the objects in it.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		var failure error
		var objects int64
		started := time.Now()
		defer func() {
			s.done(&s.count.List, started, failure)
			s.note(func(c *Counts) { c.Listed += objects })
		}()
		for obj, err := range s.Store.List(ctx, prefix, opts) {
			if err != nil {
				failure = err
			} else {
				objects++
			}
			if !yield(obj, err) {
				return
			}
		}
	}
}

// Delete counts a call.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	started := time.Now()
	err := s.Store.Delete(ctx, key)
	s.done(&s.count.Delete, started, err)
	return err
}

// DeleteBatch counts a call, and an error for each key that is reported.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	started := time.Now()
	failures, err := s.Store.DeleteBatch(ctx, keys)
	s.done(&s.count.DeleteBatch, started, err)
	s.note(func(c *Counts) {
		for _, f := range failures {
			c.fail(&c.DeleteBatch, f.Err)
		}
	})
	return failures, err
}

// ServerTime counts a call.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	started := time.Now()
	t, err := s.Store.ServerTime(ctx)
	s.done(&s.count.ServerTime, started, err)
	return t, err
}

// in counts what is read from a body.
type in struct {
	r io.Reader
	s *Store
}

func (r *in) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.s.note(func(c *Counts) { c.BytesWritten += int64(n) })
	return n, err
}

// out counts what a reader of the store gives.
type out struct {
	io.ReadCloser
	s      *Store
	closed sync.Once
}

func (r *out) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.s.note(func(c *Counts) {
		c.BytesRead += int64(n)
		if err != io.EOF {
			c.fail(&c.Get, err)
		}
	})
	return n, err
}

func (r *out) Close() error {
	r.closed.Do(func() { r.s.note(func(c *Counts) { c.OpenReaders-- }) })
	return r.ReadCloser.Close()
}

// fail counts an error; nil is none.
func (c *Counts) fail(op *Op, err error) {
	if err == nil {
		return
	}
	op.Errors++
	if c.ErrorKinds == nil {
		c.ErrorKinds = map[hbackup.Kind]int64{}
	}
	c.ErrorKinds[hbackup.KindOf(err)]++
}
