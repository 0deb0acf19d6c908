package faulty

import (
	"context"
	"io"

	"hbackup/storage"
)

// Permanence passes on.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

// Holder gives a Holder that fails by the script, if inner is one.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

// OpenUpload can fail; a lost one leaves an upload without a ticket.
func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	f, err := h.s.next(ctx, opOpen, key)
	if err != nil {
		return storage.Ticket{}, err
	}
	t, err := h.inner.OpenUpload(ctx, key, stamp)
	if err := f.lost(opOpen, h.s.Location().At(key), err); err != nil {
		return storage.Ticket{}, err
	}
	return t, nil
}

// FillUpload can fail before, after, or in the middle of the body.
func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	f, err := h.s.next(ctx, opFill, t.Key)
	if err != nil {
		return storage.Receipt{}, err
	}
	path := h.s.Location().At(t.Key)
	if f.name == "half" || f.name == "reset" {
		body = io.MultiReader(io.LimitReader(body, f.part(opts.Size)), broken{f.err(opFill, path)})
	}
	r, err := h.inner.FillUpload(ctx, t, body, opts)
	if err := f.lost(opFill, path, err); err != nil {
		return storage.Receipt{}, err
	}
	return r, nil
}

// FinishUpload can fail.
func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	f, err := h.s.next(ctx, opFinish, r.Key)
	if err != nil {
		return storage.Object{}, err
	}
	if f.name == "twice" {
		h.inner.FinishUpload(ctx, r)
	}
	o, err := h.inner.FinishUpload(ctx, r)
	if err := f.lost(opFinish, h.s.Location().At(r.Key), err); err != nil {
		return storage.Object{}, err
	}
	return o, nil
}

// DropUpload can fail.
func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	f, err := h.s.next(ctx, opDrop, t.Key)
	if err != nil {
		return err
	}
	if f.name == "twice" {
		h.inner.DropUpload(ctx, t)
	}
	return f.lost(opDrop, h.s.Location().At(t.Key), h.inner.DropUpload(ctx, t))
}

// OpenUploads can fail.
func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	f, err := h.s.next(ctx, opHeld, key)
	if err != nil {
		return nil, err
	}
	open, err := h.inner.OpenUploads(ctx, key)
	if err := f.lost(opHeld, h.s.Location().At(key), err); err != nil {
		return nil, err
	}
	return open, nil
}
