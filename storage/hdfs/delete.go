package hdfs

import (
	"context"
	"slices"
	"strings"
	"sync"

	"hbackup/storage"
)

// Delete removes a file and the directories that are empty after it.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := s.remove(ctx, key); err != nil {
		return err
	}
	s.prune(ctx, folder(key))
	return nil
}

// deleters is how many files of a batch are deleted at once: each costs the name
// node a call or two, and a log that it writes in groups.
const deleters = 8

// DeleteBatch removes files side by side, as HDFS deletes one with each call.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.err("delete in", "", err)
	}
	errs := make([]error, len(keys))
	work := make(chan int)
	var wg sync.WaitGroup
	for range min(deleters, len(keys)) {
		wg.Go(func() {
			for i := range work {
				errs[i] = s.remove(ctx, keys[i])
			}
		})
	}
	for i := range keys {
		work <- i
	}
	close(work)
	wg.Wait()
	var failures []storage.DeleteFailure
	var folders []string
	for i, err := range errs {
		if err != nil {
			failures = append(failures, storage.DeleteFailure{Key: keys[i], Err: err})
			continue
		}
		folders = append(folders, folder(keys[i]))
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	for _, dir := range slices.Backward(folders) { // the lower ones first
		s.prune(ctx, dir)
	}
	return failures, nil
}

// remove removes a file. A directory is no object, so one that is not empty
// counts as absent.
func (s *Store) remove(ctx context.Context, key storage.Key) error {
	if err := s.check(ctx, "delete", key); err != nil {
		return err
	}
	if err := s.fs.Remove(ctx, s.at(string(key))); err != nil && !isNotHere(err) {
		return s.err("delete", key, err)
	}
	return nil
}

// prune removes directories that are empty, from the given one up, but not the
// location. The name node refuses those that are not, and a file that has taken
// the name stays. It is of no harm when a directory stays.
func (s *Store) prune(ctx context.Context, dir string) {
	for dir != "" {
		s.dirs.forget(dir)
		if s.fs.RemoveEmptyDir(ctx, s.at(dir)) != nil {
			return
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	}
}
