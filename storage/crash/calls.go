package crash

import (
	"bytes"
	"context"
	"io"
	"iter"
	"time"

	"hbackup/storage"
	"hbackup/storage/mem"
)

// Location gives that of the place.
func (s *Store) Location() storage.Location { return s.place.Location() }

// Capabilities are those of the place.
func (s *Store) Capabilities() storage.Capabilities { return s.place.Capabilities() }

// Put writes an object.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	again := body
	if s.plan.Fate == Late { // it may be needed when its reader is gone
		data, err := io.ReadAll(storage.NewBody(ctx, body, opts))
		again = &parts{data: data, err: err}
	}
	return change(s, "put", key, func(place *mem.Store) (storage.Object, error) {
		return place.Put(s.unless(ctx, place), key, again, opts)
	}, func() { io.CopyN(io.Discard, body, opts.Size/2) })
}

// parts gives bytes that were read before, and how their reading ended.
type parts struct {
	data []byte
	err  error
	r    *bytes.Reader
}

func (p *parts) Read(b []byte) (int, error) {
	if p.r == nil {
		p.r = bytes.NewReader(p.data)
	}
	n, err := p.r.Read(b)
	if err == io.EOF && p.err != nil {
		err = p.err
	}
	return n, err
}

// unless gives the context of a call: that of its caller, and none for a late one.
func (s *Store) unless(ctx context.Context, place *mem.Store) context.Context {
	if place == s.place {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Get opens a range of an object.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	var obj storage.Object
	body, err := ask(s, "get", key, func() (body io.ReadCloser, err error) {
		body, obj, err = s.place.Get(ctx, key, r)
		return body, err
	})
	if err != nil {
		return nil, storage.Object{}, err
	}
	return &reader{body, s, key}, obj, nil
}

// reader dies with its process.
type reader struct {
	io.ReadCloser
	s   *Store
	key storage.Key
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.s.alive("read", r.key); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	return ask(s, "stat", key, func() (storage.Object, error) { return s.place.Stat(ctx, key) })
}

// List gives the objects under a prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		list, err := ask(s, "list", storage.Key(prefix), func() (iter.Seq2[storage.Object, error], error) {
			return s.place.List(ctx, prefix, opts), nil
		})
		if err != nil {
			yield(storage.Object{}, err)
			return
		}
		for obj, err := range list {
			if dead := s.alive("list", storage.Key(prefix)); dead != nil {
				obj, err = storage.Object{}, dead
			}
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	_, err := change(s, "delete", key, func(place *mem.Store) (struct{}, error) {
		return struct{}{}, place.Delete(s.unless(ctx, place), key)
	}, nil)
	return err
}

// DeleteBatch removes many objects. A torn one removes the first half of them.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	return change(s, "delete", "", func(place *mem.Store) ([]storage.DeleteFailure, error) {
		return place.DeleteBatch(s.unless(ctx, place), keys)
	}, func() { s.place.DeleteBatch(ctx, keys[:len(keys)/2]) })
}

// ServerTime gives the clock of the place.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	return ask(s, "ask the time of", "", func() (time.Time, error) { return s.place.ServerTime(ctx) })
}

// Close closes nothing.
func (s *Store) Close() error { return nil }
