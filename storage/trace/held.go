package trace

import (
	"context"
	"io"
	"log/slog"

	"hbackup/storage"
)

// Unwrap gives the store inside.
func (s *Store) Unwrap() storage.Store { return s.Store }

// Permanence passes on.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

// Holder gives a Holder whose calls are written down, if inner is one.
func (s *Store) Holder() (storage.Holder, bool) {
	h, ok := storage.HolderOf(s.Store)
	return holder{h, s}, ok
}

type holder struct {
	inner storage.Holder
	s     *Store
}

func (h holder) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	c := h.s.begin(ctx, "open upload", key)
	t, err := h.inner.OpenUpload(ctx, key, stamp)
	c.end(err)
	return t, err
}

func (h holder) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	c := h.s.begin(ctx, "fill upload", t.Key, slog.Int64("size", opts.Size))
	count := &counter{r: body}
	r, err := h.inner.FillUpload(ctx, t, count, opts)
	c.add(slog.Int64("bytes", count.n))
	c.end(err)
	return r, err
}

func (h holder) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	c := h.s.begin(ctx, "finish upload", r.Key, slog.Int64("size", r.Size))
	obj, err := h.inner.FinishUpload(ctx, r)
	c.end(err)
	return obj, err
}

func (h holder) DropUpload(ctx context.Context, t storage.Ticket) error {
	c := h.s.begin(ctx, "drop upload", t.Key)
	err := h.inner.DropUpload(ctx, t)
	c.end(err)
	return err
}

func (h holder) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	c := h.s.begin(ctx, "list uploads", key)
	open, err := h.inner.OpenUploads(ctx, key)
	c.add(slog.Int("uploads", len(open)))
	c.end(err)
	return open, err
}
