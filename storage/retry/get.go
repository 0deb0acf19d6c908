package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"hbackup"
	"hbackup/storage"
)

// Get opens the bytes of the range. The reader goes on where it broke off.
func (s *Store) Get(ctx context.Context, key storage.Key, want storage.Range) (io.ReadCloser, storage.Object, error) {
	own, cancel := context.WithCancel(ctx)
	r := &reader{patience: s.patience("read", key), ctx: own, cancel: cancel, key: key}
	body, obj, err := s.open(own, r.patience, key, want)
	if err != nil {
		cancel()
		return nil, storage.Object{}, err
	}
	offset, length, err := want.Of(obj.Size)
	if err != nil {
		cancel()
		return nil, storage.Object{}, errors.Join(hbackup.E("get", r.path, hbackup.KindOther, err), body.Close())
	}
	r.body, r.obj, r.at, r.end = body, obj, offset, offset+length
	r.verify = obj.HasDigest && length == obj.Size
	return r, obj, nil
}

// open opens a range, and again when that fails for a moment.
func (s *Store) open(ctx context.Context, p *patience, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	var obj storage.Object
	body, err := ask(ctx, p, func() (body io.ReadCloser, err error) {
		body, obj, err = s.Store.Get(ctx, key, r)
		return body, err
	})
	return body, obj, err
}

// reader gives the bytes of a range, of one object only.
type reader struct {
	*patience
	ctx    context.Context
	cancel context.CancelFunc
	key    storage.Key
	obj    storage.Object // as it was opened

	at, end int64 // the next byte, and the one behind the last
	verify  bool  // all bytes of the object are read, and their digest is known
	sum     storage.Digest
	failure error // of the body, not dealt with yet
	err     error // the last word

	mu     sync.Mutex // guards what follows
	body   io.ReadCloser
	closed bool
}

// Read gives the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil {
		if r.failure != nil {
			if r.err = r.resume(r.failure); r.err != nil {
				break
			}
			r.failure = nil
		}
		n, err := r.current().Read(p)
		if int64(n) > r.end-r.at {
			r.err = hbackup.Errorf("read", r.path, hbackup.KindCorrupt, "the store gave more than was asked for")
			break
		}
		r.at += int64(n)
		if r.verify {
			r.sum = storage.AddDigest(r.sum, p[:n])
		}
		if n > 0 {
			r.progress()
		}
		switch {
		case r.at == r.end && (err == io.EOF || passing(err)): // every byte has come, whatever the end was like
			r.err = r.finish()
		case err == io.EOF:
			r.failure = hbackup.Errorf("read", r.path, hbackup.KindIncomplete, "it ended at byte %d of %d", r.at, r.obj.Size)
		default:
			r.failure = err
		}
		if n > 0 || err == nil {
			return n, nil
		}
	}
	return 0, r.err
}

func (r *reader) current() io.Reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body
}

// passing reports failures of a reader after which it may go on.
func passing(err error) bool {
	return hbackup.Retryable(err) || hbackup.IsKind(err, hbackup.KindIncomplete)
}

// resume opens the rest after a failure. It gives the failure when that cannot be.
func (r *reader) resume(failure error) error {
	for {
		if !passing(failure) || r.ctx.Err() != nil || !r.wait(r.ctx, failure) {
			return r.over(r.ctx, failure)
		}
		body, obj, err := r.Store.Store.Get(r.ctx, r.key, storage.Range{Offset: r.at, Length: r.end - r.at})
		switch {
		case hbackup.IsKind(err, hbackup.KindNotFound, hbackup.KindUsage): // usage: the offset lies behind its end
			return r.broken("the object was deleted or replaced while it was read")
		case err != nil:
			failure = err
			continue
		case !same(r.obj, obj):
			body.Close() // of another object
			return r.broken("the object was replaced while it was read")
		}
		return r.exchange(body)
	}
}

func (r *reader) broken(why string) error {
	return hbackup.E("read", r.path, hbackup.KindIncomplete, fmt.Errorf("after %d of %d bytes: %s", r.at, r.obj.Size, why))
}

// exchange takes the new body in the place of the old one.
func (r *reader) exchange(body io.ReadCloser) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		body.Close() // nobody reads it
		return errClosed
	}
	r.body.Close() // it has failed; there is nothing in its error
	r.body = body
	return nil
}

// same reports whether two descriptions are of one content. Without digests the
// time of the last write must do: a rewrite of the same size within the grain of
// the store's clock is not told.
func same(a, b storage.Object) bool {
	switch {
	case a.Size != b.Size:
		return false
	case a.HasDigest && b.HasDigest:
		return a.Digest == b.Digest
	}
	return a.Modified.Equal(b.Modified)
}

// finish makes sure that the pieces make up the object.
func (r *reader) finish() error {
	if r.verify && r.sum != r.obj.Digest {
		return hbackup.Errorf("read", r.path, hbackup.KindCorrupt, "its digest is %s; the store keeps %s", r.sum, r.obj.Digest)
	}
	return io.EOF
}

var errClosed = errors.New("the reader is closed")

// Close ends a Read that waits for its next try, too.
func (r *reader) Close() error {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.body.Close()
}
