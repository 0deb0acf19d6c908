package gcs

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/storage"
)

// deletesAtOnce is how many single deletes of a batch are under way at once: the
// service has no request that deletes many.
const deletesAtOnce = 16

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := storage.Check(ctx, "delete", s.loc, key); err != nil {
		return err
	}
	err := s.object(key).Delete(ctx)
	switch {
	case err == nil:
		s.sawBucket()
		return nil
	case isMissing(err) && ctx.Err() == nil:
		return s.checkBucket(ctx)
	}
	return s.fail(ctx, "delete", key, err)
}

// DeleteBatch removes many objects, one with each request and some at once.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fail(ctx, "delete", "", err)
	}
	var mu sync.Mutex
	var failures []storage.DeleteFailure
	var group errgroup.Group
	group.SetLimit(deletesAtOnce)
	seen := make(map[storage.Key]bool, len(keys))
	for _, key := range keys {
		if err := key.Validate(); err != nil {
			mu.Lock()
			failures = append(failures, storage.DeleteFailure{Key: key, Err: hbackup.E("delete", s.loc.At(key), hbackup.KindUsage, err)})
			mu.Unlock()
			continue
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		group.Go(func() error {
			if err := s.Delete(ctx, key); err != nil {
				mu.Lock()
				failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
				mu.Unlock()
			}
			return nil
		})
	}
	group.Wait() // its functions give no errors
	return failures, nil
}
