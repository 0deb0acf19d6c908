// Package readonly makes sure that a store is not written to: verify, list and
// the planning of a restore work on a store that is wrapped in it.
package readonly

import (
	"context"
	"io"

	"hbackup"
	"hbackup/storage"
)

// Store passes reads on and refuses writes with KindReadOnly.
type Store struct{ storage.Store }

// New wraps inner.
func New(inner storage.Store) Store { return Store{inner} }

func (s Store) refuse(op string, key storage.Key) error {
	return hbackup.Errorf(op, s.Location().At(key), hbackup.KindReadOnly, "the location is opened for reading only")
}

// Put refuses.
func (s Store) Put(_ context.Context, key storage.Key, _ io.Reader, _ storage.PutOptions) (storage.Object, error) {
	return storage.Object{}, s.refuse("put", key)
}

// Delete refuses.
func (s Store) Delete(_ context.Context, key storage.Key) error { return s.refuse("delete", key) }

// DeleteBatch refuses.
func (s Store) DeleteBatch(context.Context, []storage.Key) ([]storage.DeleteFailure, error) {
	return nil, s.refuse("delete", "")
}

// Permanence passes on. The store is never a Holder.
func (s Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}
