package limit

import (
	"context"
	"io"

	"hbackup/storage"
)

// Unwrap gives the store inside.
func (s *Store) Unwrap() storage.Store { return s.Store }

// Permanence passes on.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

// Holder gives a Holder whose calls are limited as others are, if inner is one.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := h.s.call(ctx, "open upload", key); err != nil {
		return storage.Ticket{}, err
	}
	return h.inner.OpenUpload(ctx, key, stamp)
}

func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	if err := h.s.call(ctx, "fill upload", t.Key); err != nil {
		return storage.Receipt{}, err
	}
	return h.inner.FillUpload(ctx, t, h.s.upward(ctx, "fill upload", t.Key, body), opts)
}

func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := h.s.call(ctx, "finish upload", r.Key); err != nil {
		return storage.Object{}, err
	}
	return h.inner.FinishUpload(ctx, r)
}

func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := h.s.call(ctx, "drop upload", t.Key); err != nil {
		return err
	}
	return h.inner.DropUpload(ctx, t)
}

func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := h.s.call(ctx, "list uploads", key); err != nil {
		return nil, err
	}
	return h.inner.OpenUploads(ctx, key)
}
