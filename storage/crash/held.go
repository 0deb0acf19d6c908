package crash

import (
	"context"
	"io"

	"hbackup/storage"
	"hbackup/storage/mem"
)

// Permanence gives that of the place, and is no step.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return s.place.Permanence(ctx)
}

// OpenUpload makes an upload. A late one gets no ticket that anybody has.
func (s *Store) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	return change(s, "open upload", key, func(place *mem.Store) (storage.Ticket, error) {
		return place.OpenUpload(s.unless(ctx, place), key, stamp)
	}, nil)
}

// FillUpload sends the body. A late one sends nothing: its body is gone.
func (s *Store) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	return change(s, "fill upload", t.Key, func(place *mem.Store) (storage.Receipt, error) {
		if place != s.place {
			return storage.Receipt{}, ErrDead
		}
		return place.FillUpload(ctx, t, body, opts)
	}, func() { io.CopyN(io.Discard, body, opts.Size/2) })
}

// FinishUpload makes the object visible.
func (s *Store) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	return change(s, "finish upload", r.Key, func(place *mem.Store) (storage.Object, error) {
		return place.FinishUpload(s.unless(ctx, place), r)
	}, nil)
}

// DropUpload gives an upload up.
func (s *Store) DropUpload(ctx context.Context, t storage.Ticket) error {
	_, err := change(s, "drop upload", t.Key, func(place *mem.Store) (struct{}, error) {
		return struct{}{}, place.DropUpload(s.unless(ctx, place), t)
	}, nil)
	return err
}

// OpenUploads lists the uploads of a key.
func (s *Store) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	return ask(s, "list uploads", key, func() ([]storage.Ticket, error) { return s.place.OpenUploads(ctx, key) })
}
