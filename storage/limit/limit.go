// Package limit bounds how fast a store is used: the bytes per second that go up
// and that come down, and the calls per second.
//
// Calls that run at the same time share a rate: each takes its bytes in small
// pieces, and pieces wait in the order in which they come. A rate may be exceeded
// by what a tenth of a second is worth. Nobody waits past the end of his context,
// and urgent calls do not wait: the others pay for them.
//
// A put, a get, a look, a deletion, a batch of deletions and a thousand objects of
// a listing are a call each. A kind of store may need several requests for one,
// such as the parts of a large object; those are not counted.
package limit

import (
	"context"
	"io"
	"iter"
	"time"

	"golang.org/x/time/rate"

	"hbackup"
	"hbackup/storage"
)

// Rates are what is allowed each second; 0 means no limit.
type Rates struct {
	Upload   int64   // bytes of bodies that are put
	Download int64   // bytes of bodies that are got
	Calls    float64 // calls
}

// Store keeps to the rates.
type Store struct {
	storage.Store
	up, down, calls *bucket
}

var _ storage.Store = (*Store)(nil)

// New wraps inner.
func New(inner storage.Store, r Rates) *Store {
	return &Store{
		Store: inner,
		up:    newBucket(float64(r.Upload), maxPiece),
		down:  newBucket(float64(r.Download), maxPiece),
		calls: newBucket(r.Calls, 1<<20),
	}
}

// A piece of a body is what is read at once, in bytes.
const maxPiece = 256 << 10

// page is how many objects of a listing count as a call.
const page = 1000

// bucket is the tokens of one rate; a nil one has no end.
type bucket struct{ *rate.Limiter }

// newBucket gives one that holds what a tenth of a second is worth, up to most.
func newBucket(perSecond float64, most int) *bucket {
	if perSecond <= 0 {
		return nil
	}
	burst := max(1, int(min(perSecond/10, float64(most))))
	return &bucket{rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// piece bounds a buffer to what can be paid at once.
func (b *bucket) piece(p []byte) []byte {
	if b == nil {
		return p
	}
	return p[:min(len(p), b.Burst())]
}

// take waits until n tokens are there, or gives KindInterrupted or KindTimeout
// when the context is over or would be.
func (b *bucket) take(ctx context.Context, op, path string, n int) error {
	if b == nil || n <= 0 {
		return nil
	}
	if storage.IsUrgent(ctx) {
		b.ReserveN(time.Now(), n)
		return nil
	}
	err := b.WaitN(ctx, n)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return hbackup.E(op, path, hbackup.KindOther, ctx.Err())
	}
	return hbackup.Errorf(op, path, hbackup.KindTimeout, "the rate limit leaves no time for it: %w", context.DeadlineExceeded)
}

func (s *Store) call(ctx context.Context, op string, key storage.Key) error {
	return s.calls.take(ctx, op, s.Location().At(key), 1)
}

// Put writes one object.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := s.call(ctx, "put", key); err != nil {
		return storage.Object{}, err
	}
	return s.Store.Put(ctx, key, s.upward(ctx, "put", key, body), opts)
}

// upward is a body that is sent no faster than the rate.
func (s *Store) upward(ctx context.Context, op string, key storage.Key, body io.Reader) io.Reader {
	if s.up == nil {
		return body
	}
	return &reader{ctx: ctx, r: body, b: s.up, op: op, path: s.Location().At(key)}
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := s.call(ctx, "get", key); err != nil {
		return nil, storage.Object{}, err
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil || s.down == nil {
		return body, obj, err
	}
	own, cancel := context.WithCancel(ctx)
	return &bodyReader{reader: reader{ctx: own, r: body, b: s.down, op: "read", path: s.Location().At(key)}, cancel: cancel, body: body}, obj, nil
}

// reader gives bytes no faster than its bucket fills. It pays for what it has read
// before it gives it away.
type reader struct {
	ctx      context.Context
	r        io.Reader
	b        *bucket
	op, path string
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(r.b.piece(p))
	if werr := r.b.take(r.ctx, r.op, r.path, n); werr != nil {
		return 0, werr
	}
	return n, err
}

// bodyReader is the body of a Get. Closing it ends a Read that waits.
type bodyReader struct {
	reader
	cancel context.CancelFunc
	body   io.Closer
}

func (r *bodyReader) Close() error {
	r.cancel()
	return r.body.Close()
}

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := s.call(ctx, "stat", key); err != nil {
		return storage.Object{}, err
	}
	return s.Store.Stat(ctx, key)
}

// List gives the objects under the prefix.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := s.call(ctx, "list", storage.Key(prefix)); err != nil {
			yield(storage.Object{}, err)
			return
		}
		n := 0
		for obj, err := range s.Store.List(ctx, prefix, opts) {
			if n++; err == nil && n%page == 1 && n > 1 {
				err = s.call(ctx, "list", storage.Key(prefix))
			}
			if err != nil {
				yield(storage.Object{}, err)
				return
			}
			if !yield(obj, nil) {
				return
			}
		}
	}
}

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := s.call(ctx, "delete", key); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// DeleteBatch removes many objects.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := s.call(ctx, "delete", ""); err != nil {
		return nil, err
	}
	return s.Store.DeleteBatch(ctx, keys)
}

// ServerTime gives the store's clock.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	if err := s.call(ctx, "ask the time of", ""); err != nil {
		return time.Time{}, err
	}
	return s.Store.ServerTime(ctx)
}
