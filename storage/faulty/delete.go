package faulty

import (
	"context"

	"hbackup/storage"
)

// Delete can fail.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	f, err := s.next(ctx, opDelete, key)
	if err != nil {
		return err
	}
	path := s.Location().At(key)
	switch f.name {
	case "late":
		return s.postpone(f, opDelete, path, func() { s.Store.Delete(context.WithoutCancel(ctx), key) })
	case "twice":
		s.Store.Delete(ctx, key)
	}
	return f.lost(opDelete, path, s.Store.Delete(ctx, key))
}

// DeleteBatch can fail as a whole or for every other key.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	f, err := s.next(ctx, opBatch, keys...)
	if err != nil {
		return nil, err
	}
	var stay []storage.DeleteFailure
	if f.name == "some" {
		var gone []storage.Key
		for i, key := range keys {
			if i%2 == 0 {
				stay = append(stay, storage.DeleteFailure{Key: key, Err: f.err(opDelete, s.Location().At(key))})
			} else {
				gone = append(gone, key)
			}
		}
		keys = gone
	}
	if f.name == "twice" {
		s.Store.DeleteBatch(ctx, keys)
	}
	failures, err := s.Store.DeleteBatch(ctx, keys)
	if err := f.lost(opBatch, string(s.Location()), err); err != nil {
		return nil, err
	}
	return append(stay, failures...), nil
}
