// Package trace writes down every call of a store: for people who want to know
// what is asked of it, how long each answer takes and what fails.
//
// A call is one message at the level debug when it has ended: the operation, the
// object's full name, how long it took and, if it failed, the kind of its error.
// Puts and reads say how many bytes passed, listings how many objects, batches how
// many keys. A read has ended when its body is closed, a listing when its loop is
// left; "first_ms" is when its first byte or object could be had. There are names
// in it and no contents, and no words of errors, which may be anybody's.
package trace

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Store writes down what is asked of another.
type Store struct {
	storage.Store
	log *slog.Logger
}

var _ storage.Store = (*Store)(nil)

// New wraps inner.
func New(inner storage.Store, log *slog.Logger) *Store { return &Store{Store: inner, log: log} }

// span is a call under way.
type span struct {
	s     *Store
	ctx   context.Context
	op    string
	path  string
	began time.Time
	attrs []slog.Attr
}

func (s *Store) begin(ctx context.Context, op string, key storage.Key, attrs ...slog.Attr) *span {
	return &span{s: s, ctx: ctx, op: op, path: s.Location().At(key), began: time.Now(), attrs: attrs}
}

func (c *span) add(attrs ...slog.Attr) { c.attrs = append(c.attrs, attrs...) }

func (c *span) elapsed(key string) slog.Attr {
	return slog.Float64(key, float64(time.Since(c.began).Microseconds())/1000)
}

func (c *span) end(err error) {
	attrs := append([]slog.Attr{slog.String("path", c.path), c.elapsed("ms")}, c.attrs...)
	if err != nil {
		kind := hbackup.KindOf(err)
		if kind == hbackup.KindOther {
			kind = "other"
		}
		attrs = append(attrs, slog.String("error", string(kind)))
	}
	c.s.log.LogAttrs(c.ctx, slog.LevelDebug, c.op, attrs...)
}

// Put writes one object.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	c := s.begin(ctx, "put", key, slog.Int64("size", opts.Size), slog.Bool("if_absent", opts.IfAbsent))
	count := &counter{r: body}
	obj, err := s.Store.Put(ctx, key, count, opts)
	c.add(slog.Int64("bytes", count.n))
	c.end(err)
	return obj, err
}

// counter counts what is read from a body.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	c := s.begin(ctx, "get", key)
	if r != (storage.Range{}) {
		c.add(slog.Int64("offset", r.Offset), slog.Int64("length", r.Length))
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil {
		c.end(err)
		return nil, obj, err
	}
	c.add(slog.Int64("size", obj.Size), c.elapsed("first_ms"))
	return &reader{body: body, c: c}, obj, nil
}

// reader is a read under way.
type reader struct {
	body io.ReadCloser
	c    *span

	mu      sync.Mutex // Close may come from another goroutine
	n       int64
	failure error
	closed  bool
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n += int64(n)
	if err != io.EOF && r.failure == nil {
		r.failure = err
	}
	return n, err
}

func (r *reader) Close() error {
	err := r.body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return err
	}
	r.closed = true
	if r.failure == nil {
		r.failure = err
	}
	r.c.add(slog.Int64("bytes", r.n))
	r.c.end(r.failure)
	return err
}

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	c := s.begin(ctx, "stat", key)
	obj, err := s.Store.Stat(ctx, key)
	c.end(err)
	return obj, err
}

// List gives the objects under the prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		c := s.begin(ctx, "list", storage.Key(prefix))
		if opts.After != "" {
			c.add(slog.String("after", string(opts.After)))
		}
		objects := 0
		var failure error
		defer func() {
			c.add(slog.Int("objects", objects))
			c.end(failure)
		}()
		for obj, err := range s.Store.List(ctx, prefix, opts) {
			if err != nil {
				failure = err
			} else if objects++; objects == 1 {
				c.add(c.elapsed("first_ms"))
			}
			if !yield(obj, err) {
				return
			}
		}
	}
}

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	c := s.begin(ctx, "delete", key)
	err := s.Store.Delete(ctx, key)
	c.end(err)
	return err
}

// DeleteBatch removes many objects.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	c := s.begin(ctx, "delete batch", "", slog.Int("keys", len(keys)))
	failures, err := s.Store.DeleteBatch(ctx, keys)
	c.add(slog.Int("failed", len(failures)))
	c.end(err)
	return failures, err
}

// ServerTime gives the store's clock.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	c := s.begin(ctx, "server time", "")
	t, err := s.Store.ServerTime(ctx)
	c.end(err)
	return t, err
}
