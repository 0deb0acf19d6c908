package gcs

import (
	"context"
	"net/http"
	"sync"

	gcs "cloud.google.com/go/storage"
	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/storage"
)

// deletesAtOnce is how many single deletes of a batch are under way at once: the
// service has no request that deletes many.
const deletesAtOnce = 16

// Delete removes the object that is there when it begins, by its generation. So an
// attempt that is repeated because its answer was lost does not take away what
// somebody else has put there since, such as the next one's lease.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := s.check(ctx, "delete", key); err != nil {
		return err
	}
	attrs, err := s.object(key).Attrs(ctx)
	if err != nil {
		return s.deleted(ctx, key, err)
	}
	if attrs.Generation == 0 {
		return hbackup.E("delete", s.loc.At(key), hbackup.KindUnsupported, errNoGeneration)
	}
	err = s.object(key).If(gcs.Conditions{GenerationMatch: attrs.Generation}).Delete(ctx)
	if statusOf(err) == http.StatusPreconditionFailed {
		return nil // it is gone, and another one is there
	}
	return s.deleted(ctx, key, err)
}

// deleted judges the end of a deletion: a missing object is no error, and a
// missing bucket is.
func (s *Store) deleted(ctx context.Context, key storage.Key, err error) error {
	switch {
	case err == nil:
		s.sawBucket()
		return nil
	case isMissing(err) && ctx.Err() == nil:
		return s.checkBucket(ctx)
	}
	return s.fail(ctx, "delete", key, err)
}

// DeleteBatch removes many objects, one with each request and some at once,
// whatever their generation is: to ask for it would double the requests.
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
		if err := s.check(context.WithoutCancel(ctx), "delete", key); err != nil {
			mu.Lock()
			failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
			mu.Unlock()
			continue
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		group.Go(func() error {
			if err := s.deleted(ctx, key, s.object(key).Delete(ctx)); err != nil {
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
