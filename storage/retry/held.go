package retry

import (
	"context"
	"errors"
	"io"

	"hbackup/storage"
)

// Unwrap gives the store inside.
func (s *Store) Unwrap() storage.Store { return s.Store }

// Permanence passes on.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

// Holder gives a Holder whose calls are repeated, if inner is one.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

// OpenUpload makes an upload. When it was asked for more than once the ticket is
// doubtful: an attempt whose answer was lost may have made another one.
func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	doubt := false
	t, err := ask(ctx, h.s.patience("open upload", key), func() (storage.Ticket, error) {
		t, err := h.inner.OpenUpload(ctx, key, stamp)
		doubt = doubt || err != nil && mayBeDone(err)
		return t, err
	})
	t.Doubtful = t.Doubtful || doubt && err == nil
	return t, err
}

// FillUpload sends the body, and again if it can be read again: an upload may be
// filled as often as one likes.
func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	p, rewind := h.s.patience("fill upload", t.Key), rewinder(body)
	for {
		w := &watched{r: body}
		r, err := h.inner.FillUpload(ctx, t, w, opts)
		if err == nil || w.failed || rewind == nil || !p.again(ctx, err) {
			return r, p.over(ctx, err)
		}
		if rerr := rewind(); rerr != nil {
			return r, errors.Join(err, rerr)
		}
	}
}

// FinishUpload makes the object visible. The stamp tells it from any other one, so
// nothing needs to be settled here.
func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	return ask(ctx, h.s.patience("finish upload", r.Key), func() (storage.Object, error) { return h.inner.FinishUpload(ctx, r) })
}

// DropUpload gives the upload up.
func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	_, err := ask(ctx, h.s.patience("drop upload", t.Key), func() (struct{}, error) { return struct{}{}, h.inner.DropUpload(ctx, t) })
	return err
}

// OpenUploads lists the uploads of a key.
func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	return ask(ctx, h.s.patience("list uploads", key), func() ([]storage.Ticket, error) { return h.inner.OpenUploads(ctx, key) })
}
