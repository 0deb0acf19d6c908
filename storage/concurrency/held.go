package concurrency

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

// Holder gives a Holder whose calls are counted as others are, if inner is one.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	leave, err := h.s.enter(ctx, "open upload", key)
	if err != nil {
		return storage.Ticket{}, err
	}
	defer leave()
	return h.inner.OpenUpload(ctx, key, stamp)
}

func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	leave, err := h.s.enter(ctx, "fill upload", t.Key)
	if err != nil {
		return storage.Receipt{}, err
	}
	defer leave()
	return h.inner.FillUpload(ctx, t, body, opts)
}

func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	leave, err := h.s.enter(ctx, "finish upload", r.Key)
	if err != nil {
		return storage.Object{}, err
	}
	defer leave()
	return h.inner.FinishUpload(ctx, r)
}

func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	leave, err := h.s.enter(ctx, "drop upload", t.Key)
	if err != nil {
		return err
	}
	defer leave()
	return h.inner.DropUpload(ctx, t)
}

func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	leave, err := h.s.enter(ctx, "list uploads", key)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.inner.OpenUploads(ctx, key)
}
