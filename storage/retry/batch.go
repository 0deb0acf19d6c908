package retry

import (
	"context"

	"hbackup"
	"hbackup/storage"
)

// DeleteBatch removes objects, and once more those that did not go for a moment.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	p := s.patience("delete", "")
	var final []storage.DeleteFailure
	for first := true; ; {
		failures, err := s.Store.DeleteBatch(ctx, keys)
		switch {
		case err != nil && p.again(ctx, err):
			continue
		case err != nil && first:
			return nil, p.over(ctx, err)
		case err != nil: // of the other keys something is known
			for _, key := range keys {
				final = append(final, storage.DeleteFailure{Key: key, Err: err})
			}
			return final, nil
		}
		first = false
		var passing []storage.DeleteFailure
		for _, f := range failures {
			if hbackup.Retryable(f.Err) {
				passing = append(passing, f)
			} else {
				final = append(final, f)
			}
		}
		if len(passing) < len(keys) {
			p.progress()
		}
		if len(passing) == 0 || !p.again(ctx, passing[0].Err) {
			return append(final, passing...), nil
		}
		keys = make([]storage.Key, len(passing))
		for i, f := range passing {
			keys[i] = f.Key
		}
	}
}
