// Package prefixed shows a part of a location as a location of its own.
package prefixed

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Store is the part of another store below a prefix.
type Store struct {
	inner  storage.Store
	prefix string // ends in '/'
}

var _ storage.Store = (*Store)(nil)

// New gives the part of inner below prefix, which is one or more segments
// without a slash at its ends. With a prefix that is no valid key every use of
// the store is refused with KindUsage. Closing the part closes inner.
func New(inner storage.Store, prefix string) *Store {
	return &Store{inner: inner, prefix: prefix + "/"}
}

func (s *Store) in(key storage.Key) storage.Key { return storage.Key(s.prefix) + key }

func (s *Store) out(obj storage.Object) storage.Object {
	obj.Key = storage.Key(strings.TrimPrefix(string(obj.Key), s.prefix))
	return obj
}

// Location gives that of inner with the prefix.
func (s *Store) Location() storage.Location {
	return storage.Location(s.inner.Location().At(storage.Key(strings.TrimSuffix(s.prefix, "/"))))
}

// Capabilities are those of inner; keys are shorter by the prefix.
func (s *Store) Capabilities() storage.Capabilities {
	c := s.inner.Capabilities()
	if c.MaxKeyBytes > 0 {
		c.MaxKeyBytes = max(1, c.MaxKeyBytes-len(s.prefix))
	}
	return c
}

// Put writes an object below the prefix.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	obj, err := s.inner.Put(ctx, s.in(key), body, opts)
	return s.out(obj), err
}

// Get reads an object below the prefix.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	body, obj, err := s.inner.Get(ctx, s.in(key), r)
	return body, s.out(obj), err
}

// Stat describes an object below the prefix.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	obj, err := s.inner.Stat(ctx, s.in(key))
	return s.out(obj), err
}

// List gives the objects below the prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.After != "" {
		opts.After = s.in(opts.After)
	}
	return func(yield func(storage.Object, error) bool) {
		for obj, err := range s.inner.List(ctx, s.prefix+prefix, opts) {
			if !yield(s.out(obj), err) {
				return
			}
		}
	}
}

// Delete removes an object below the prefix.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	return s.inner.Delete(ctx, s.in(key))
}

// DeleteBatch removes objects below the prefix.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	inner := make([]storage.Key, len(keys))
	for i, key := range keys {
		inner[i] = s.in(key)
	}
	failures, err := s.inner.DeleteBatch(ctx, inner)
	for i := range failures {
		failures[i].Key = storage.Key(strings.TrimPrefix(string(failures[i].Key), s.prefix))
	}
	if err != nil {
		return failures, hbackup.E("delete in", string(s.Location()), hbackup.KindOther, err)
	}
	return failures, nil
}

// ServerTime gives the clock of inner.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	t, err := s.inner.ServerTime(ctx)
	if err != nil {
		return t, hbackup.E("use", string(s.Location()), hbackup.KindOther, err)
	}
	return t, nil
}

// Close closes inner.
func (s *Store) Close() error { return s.inner.Close() }
