package metered

import (
	"context"
	"io"
	"time"

	"hbackup/storage"
)

// Unwrap gives the store inside.
func (s *Store) Unwrap() storage.Store { return s.Store }

// Permanence passes on, uncounted.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

// Holder gives a Holder that counts.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	storage.Holder
	s *Store
}

func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	started := time.Now()
	t, err := h.Holder.OpenUpload(ctx, key, stamp)
	h.s.done(&h.s.count.OpenUpload, started, err)
	return t, err
}

func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	started := time.Now()
	r, err := h.Holder.FillUpload(ctx, t, &in{body, h.s}, opts)
	h.s.done(&h.s.count.FillUpload, started, err)
	return r, err
}

func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	started := time.Now()
	o, err := h.Holder.FinishUpload(ctx, r)
	h.s.done(&h.s.count.FinishUpload, started, err)
	return o, err
}

func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	started := time.Now()
	err := h.Holder.DropUpload(ctx, t)
	h.s.done(&h.s.count.DropUpload, started, err)
	return err
}

func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	started := time.Now()
	open, err := h.Holder.OpenUploads(ctx, key)
	h.s.done(&h.s.count.OpenUploads, started, err)
	return open, err
}
