// Package mem is a store in the memory of this process. It is the model that
// tests measure other stores by: the whole contract and nothing else. A crash of
// a program is simulated by going on with a Clone of its store.
package mem

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Store is a store in memory. Make one with New or Open.
type Store struct {
	location storage.Location
	now      func() time.Time

	permanence storage.Permanence

	mu      sync.RWMutex
	objects map[storage.Key]object
	uploads map[string]held // by id
	keys    []storage.Key   // sorted; of objects, save those in added, and some that are gone
	added   []storage.Key   // not in keys yet
	gone    int             // deletes since keys was put in order
}

// object is never changed once it is stored.
type object struct {
	data     []byte
	digest   storage.Digest
	modified time.Time
	stamp    string // of the upload that it was, "" if it was put
}

var _ storage.Store = (*Store)(nil)

// Option changes a new store.
type Option func(*Store)

// WithClock sets the clock of the store.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// New gives an empty store of its own with the location mem://name.
func New(name string, opts ...Option) *Store {
	s := &Store{
		location: storage.Location(storage.SchemeMem + "://" + name),
		now:      time.Now,
		objects:  map[storage.Key]object{},
		uploads:  map[string]held{},
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

var (
	namedMu sync.Mutex
	named   = map[storage.Location]*Store{}
)

// Open gives the one store of this process with that location; it is made when
// it is asked for the first time.
func Open(place storage.Place) *Store {
	namedMu.Lock()
	defer namedMu.Unlock()
	s, ok := named[place.Location()]
	if !ok {
		s = New(strings.TrimPrefix(string(place.Location()), storage.SchemeMem+"://"))
		named[place.Location()] = s
	}
	return s
}

// Location gives mem://name.
func (s *Store) Location() storage.Location { return s.location }

// Capabilities says that digests are kept.
func (s *Store) Capabilities() storage.Capabilities {
	return storage.Capabilities{StoredDigest: true, MaxKeyBytes: storage.MaxKeyBytes, BatchDelete: 1000}
}

// Put reads the whole body, then publishes it.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := storage.CheckPut(ctx, s.location, key, opts); err != nil {
		return storage.Object{}, err
	}
	b := storage.NewBody(ctx, body, opts)
	var buf bytes.Buffer
	buf.Grow(int(min(opts.Size, 1<<20)))
	if _, err := buf.ReadFrom(b); err != nil {
		return storage.Object{}, s.err("put", key, hbackup.KindOther, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.objects[key]; taken && opts.IfAbsent {
		return storage.Object{}, s.err("put", key, hbackup.KindExists, errTaken)
	}
	o := object{data: buf.Bytes(), digest: b.Digest(), modified: s.now()}
	s.store(key, o)
	return o.describe(key), nil
}

// Get opens a range of an object as it is now; later changes do not reach the
// reader.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	o, err := s.find(ctx, "get", key)
	if err != nil {
		return nil, storage.Object{}, err
	}
	offset, length, err := r.Of(int64(len(o.data)))
	if err != nil {
		return nil, storage.Object{}, s.err("get", key, hbackup.KindOther, err)
	}
	return &reader{ctx: ctx, s: s, key: key, r: bytes.NewReader(o.data[offset : offset+length])}, o.describe(key), nil
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	o, err := s.find(ctx, "stat", key)
	if err != nil {
		return storage.Object{}, err
	}
	obj := o.describe(key)
	obj.Ours = true // there is no other way into it
	return obj, nil
}

func (s *Store) find(ctx context.Context, op string, key storage.Key) (object, error) {
	if err := storage.Check(ctx, op, s.location, key); err != nil {
		return object{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, s.err(op, key, hbackup.KindNotFound, errMissing)
	}
	return o, nil
}

// pageSize is how many objects a listing takes at a time, as other stores do.
const pageSize = 1000

// List walks the keys in order. Changes between two pages are seen.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.Folders {
		return storage.Folders(func(o storage.ListOptions) iter.Seq2[storage.Object, error] { return s.List(ctx, prefix, o) }, prefix, opts)
	}
	return func(yield func(storage.Object, error) bool) {
		after := opts.After
		left := opts.Limit
		for {
			if err := ctx.Err(); err != nil {
				yield(storage.Object{}, s.err("list", storage.Key(prefix), hbackup.KindOther, err))
				return
			}
			page := s.page(prefix, after)
			for _, obj := range page {
				if !yield(obj, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			after = page[len(page)-1].Key
		}
	}
}

func (s *Store) page(prefix string, after storage.Key) []storage.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	i, _ := slices.BinarySearch(s.keys, storage.Key(prefix))
	if j, exact := slices.BinarySearch(s.keys, after); after != "" {
		if exact {
			j++
		}
		i = max(i, j)
	}
	var page []storage.Object
	for ; i < len(s.keys) && len(page) < pageSize && strings.HasPrefix(string(s.keys[i]), prefix); i++ {
		if o, there := s.objects[s.keys[i]]; there {
			page = append(page, o.describe(s.keys[i]))
		}
	}
	return page
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := storage.Check(ctx, "delete", s.location, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	return nil
}

// DeleteBatch removes objects one by one.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.err("delete", "", hbackup.KindOther, err)
	}
	var failures []storage.DeleteFailure
	for _, key := range keys {
		if err := s.Delete(ctx, key); err != nil {
			failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
		}
	}
	return failures, nil
}

// ServerTime gives the clock of the store.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, s.err("ask the time of", "", hbackup.KindOther, err)
	}
	return s.now(), nil
}

// Close does nothing.
func (s *Store) Close() error { return nil }
