package hdfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// abandonedAfter is the age at which a temporary file counts as left behind by a
// dead process. Should its writer live and be very slow, its Put fails.
const abandonedAfter = 48 * time.Hour

// maxRemoved is how often a directory may be removed while it is needed. Each
// time somebody else has got on with his work.
const maxRemoved = 1000

// discardFor bounds the clearing away after a failure.
const discardFor = 30 * time.Second

// createTemp makes a file to be written and published, and the directory for it.
func (s *Store) createTemp(ctx context.Context) (writer, string, error) {
	var err error
	for range 3 {
		if err = s.makeDirs(ctx, tempDir); err != nil {
			return nil, "", err
		}
		path := s.at(tempDir) + "/" + tempName()
		var w writer
		w, err = s.fs.Create(ctx, path)
		switch {
		case err == nil && s.fs.Sealed():
			w.Abort()
			return nil, "", hbackup.Errorf("create", path, hbackup.KindUnsupported, "the name node seals its answers (hadoop.rpc.protection), so what is written could not be read again").
				WithHint("set hadoop.rpc.protection to authentication, or keep the backups elsewhere")
		case err == nil:
			s.sweep.Do(func() { s.sweepTemp(ctx, path) })
			return w, path, nil
		case errors.Is(err, files.ErrAnswerLost): // another name is as good; what may be there is swept later
		case hbackup.IsKind(err, hbackup.KindNotFound):
			s.dirs.forget(tempDir) // somebody has removed it
		default:
			return nil, "", err
		}
	}
	return nil, "", fixed(err)
}

// discard removes a temporary file, as well as it can; what stays is swept later.
func (s *Store) discard(ctx context.Context, path string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardFor)
	defer cancel()
	s.fs.Remove(ctx, path)
}

// sweepTemp removes what dead processes left in tempDir, as well as it can. The
// removal ends the lease of a file that is still open. Ages are measured by the
// name node's clock, which has just given its time to the file own.
func (s *Store) sweepTemp(ctx context.Context, own string) {
	newest, err := s.fs.Stat(ctx, own)
	for after := ""; err == nil; {
		var page []files.Info
		page, err = s.fs.ReadDirPage(ctx, s.at(tempDir), after)
		for _, f := range page {
			if !f.Dir && newest.Modified.Sub(f.Modified) > abandonedAfter {
				s.discard(ctx, f.Path)
			}
		}
		if len(page) < files.PageSize {
			return
		}
		after = page[len(page)-1].Name
	}
}

// makeDirs makes the location and a directory in it, unless it knows that it is
// there. Somebody may remove it at once, as it is empty; then it is made again.
func (s *Store) makeDirs(ctx context.Context, rel string) error {
	if s.dirs.has(rel) {
		return nil
	}
	err := s.fs.MkdirAll(ctx, s.at(rel))
	for n := 1; n < maxRemoved && hbackup.IsKind(err, hbackup.KindNotFound); n++ {
		err = s.fs.MkdirAll(ctx, s.at(rel))
	}
	switch {
	case hbackup.IsKind(err, hbackup.KindExists):
		return hbackup.E("make directory", s.at(rel), hbackup.KindConflict, err)
	case err != nil:
		return fixed(err)
	}
	s.dirs.add(rel)
	return nil
}

// known remembers which directories are there, to save the asking. One that is
// not there any more costs a failed call.
type known struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// maxKnown bounds the memory.
const maxKnown = 50_000

func (k *known) has(rel string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.seen[rel]
	return ok
}

func (k *known) add(rel string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= maxKnown {
		k.seen = map[string]struct{}{}
	}
	k.seen[rel] = struct{}{}
}

func (k *known) forget(rel string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.seen, rel)
}
