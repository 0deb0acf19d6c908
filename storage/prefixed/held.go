package prefixed

import (
	"context"
	"io"
	"strings"

	"hbackup/storage"
)

// Permanence is that of inner.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.inner)
}

// Holder gives the uploads below the prefix, if inner is a Holder. Their tickets
// hold keys of the part, so that they stay good when the location is reached by
// another way.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.inner)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

func (h holder) in(t storage.Ticket) storage.Ticket {
	t.Key = h.s.in(t.Key)
	return t
}

func (h holder) out(t storage.Ticket) storage.Ticket {
	t.Key = storage.Key(strings.TrimPrefix(string(t.Key), h.s.prefix))
	return t
}

func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	t, err := h.inner.OpenUpload(ctx, h.s.in(key), stamp)
	return h.out(t), err
}

func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	r, err := h.inner.FillUpload(ctx, h.in(t), body, opts)
	r.Ticket = h.out(r.Ticket)
	return r, err
}

func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	r.Ticket = h.in(r.Ticket)
	o, err := h.inner.FinishUpload(ctx, r)
	return h.s.out(o), err
}

func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	return h.inner.DropUpload(ctx, h.in(t))
}

func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	open, err := h.inner.OpenUploads(ctx, h.s.in(key))
	for i := range open {
		open[i] = h.out(open[i])
	}
	return open, err
}
