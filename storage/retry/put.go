package retry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hbackup"
	"hbackup/storage"
)

// Put writes one object, and again if its body can be read again.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	p := &put{patience: s.patience("put", key), key: key, opts: opts, body: body, rewind: rewinder(body)}
	for {
		obj, again, err := p.attempt(ctx)
		if err == nil || !again {
			return obj, err
		}
	}
}

// put is one call of Put.
type put struct {
	*patience
	key    storage.Key
	opts   storage.PutOptions
	body   io.Reader
	rewind func() error // nil when the body can be read only once

	sum   storage.Digest // of the body, once an attempt has read it to its end
	doubt error          // of an attempt that may have been done; nil when there was none
}

// rewinder gives what brings the body back to where it is now, or nil.
func rewinder(body io.Reader) func() error {
	seeker, ok := body.(io.Seeker)
	if !ok {
		return nil
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // a pipe, for one
	}
	return func() error {
		_, err := seeker.Seek(start, io.SeekStart)
		return err
	}
}

// attempt puts once. Again says that it shall be called once more.
func (p *put) attempt(ctx context.Context) (obj storage.Object, again bool, err error) {
	body := &watched{r: p.body}
	obj, err = p.Store.Store.Put(ctx, p.key, body, p.opts)
	switch {
	case err == nil:
		return obj, false, nil
	case body.failed: // not the store's failure
		return storage.Object{}, false, p.open(err)
	case p.opts.IfAbsent && p.doubt != nil && hbackup.IsKind(err, hbackup.KindExists):
		return p.settle(ctx, err)
	case body.fits(p.opts) && mayBeDone(err):
		p.sum, p.doubt = body.sum, err
	}
	if p.rewind == nil || !p.again(ctx, err) {
		return storage.Object{}, false, p.open(p.over(ctx, err))
	}
	if rerr := p.rewind(); rerr != nil {
		return storage.Object{}, false, p.open(errors.Join(err, rerr))
	}
	return storage.Object{}, true, err
}

// mayBeDone reports errors of a put that say nothing of its outcome.
func mayBeDone(err error) bool {
	return hbackup.IsKind(err, hbackup.KindTimeout, hbackup.KindUnavailable, hbackup.KindInterrupted)
}

// settle says whose the object is under a key that was free before an attempt of
// which nothing is known. To see an object is not enough for success: the answer
// that the key is taken is what makes it durable on every kind of store.
func (p *put) settle(ctx context.Context, exists error) (storage.Object, bool, error) {
	there, obj, err := p.look(ctx)
	switch {
	case err == nil && there == ours:
		return obj, false, nil
	case err == nil && there == anothers:
		return storage.Object{}, false, exists
	}
	return storage.Object{}, false, p.open(errors.Join(exists, err))
}

// open gives the error that ends the call. Whatever the last attempt says of
// itself, an earlier one may have been done.
func (p *put) open(failure error) error {
	if p.doubt == nil || errors.Is(failure, p.doubt) {
		return failure
	}
	return hbackup.E("put", p.path, hbackup.KindOf(p.doubt), fmt.Errorf("%w; an earlier attempt may have been done: %w", failure, p.doubt))
}

// found is what a look at the key says of a put.
type found int

const (
	nothing found = iota
	ours
	anothers
)

// look compares what is under the key with what was put: by the digest that the
// store keeps, or else by reading it.
func (p *put) look(ctx context.Context) (found, storage.Object, error) {
	obj, err := p.Stat(ctx, p.key)
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return nothing, obj, nil
	case err != nil:
		return nothing, obj, err
	case obj.Size != p.opts.Size:
		return anothers, obj, nil
	}
	if !obj.HasDigest {
		if obj.Digest, err = p.readDigest(ctx); err != nil {
			return nothing, obj, err
		}
		obj.HasDigest = true
	}
	if obj.Digest != p.sum {
		return anothers, obj, nil
	}
	return ours, obj, nil
}

func (p *put) readDigest(ctx context.Context) (sum storage.Digest, err error) {
	body, obj, err := p.Get(ctx, p.key, storage.Range{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	h := storage.NewHash()
	n, err := io.Copy(h, body)
	if err == nil && (n != p.opts.Size || obj.Size != p.opts.Size) {
		err = hbackup.Errorf("read", p.path, hbackup.KindConflict, "the object was replaced in between")
	}
	return storage.Digest(h.Sum64()), err
}

// watched is a body that notes how an attempt went through it.
type watched struct {
	r      io.Reader
	size   int64
	sum    storage.Digest
	ended  bool // its end was read
	failed bool
}

// fits reports whether the body was read to its end and kept its promise. Of any
// other no store makes an object.
func (w *watched) fits(opts storage.PutOptions) bool {
	return w.ended && w.size == opts.Size && (opts.Digest == nil || *opts.Digest == w.sum)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 && n <= len(p) {
		w.size += int64(n)
		w.sum = storage.AddDigest(w.sum, p[:n])
	}
	switch err {
	case nil:
	case io.EOF:
		w.ended = true
	default:
		w.failed = true
	}
	return n, err
}
