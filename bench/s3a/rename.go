package s3a

import (
	"context"
	"errors"
	"strings"

	"hbackup"
	"hbackup/bench"
	"hbackup/engine"
)

// Merge looks and renames.
func (f *fileSystem) Merge(ctx context.Context, from, to string) error {
	if err := f.wantFree(ctx, to); err != nil {
		return err
	}
	return f.Rename(ctx, from, to)
}

// Rename copies and deletes.
func (f *fileSystem) Rename(ctx context.Context, from, to string) error {
	source, err := f.Status(ctx, from)
	if err != nil {
		return err
	}
	if err := f.wantFree(ctx, to); err != nil {
		return err
	}
	elsewhere := bench.Parent(from) != bench.Parent(to)
	if elsewhere { // the parent must not be a file
		if _, err := f.head(ctx, f.root+bench.Parent(to)); !hbackup.IsKind(err, hbackup.KindNotFound) {
			return errors.Join(err, hbackup.Errorf("rename to", "s3://"+f.bucket+"/"+f.root+to, hbackup.KindConflict, "its directory is a file"))
		}
	}
	if source.Dir {
		err = f.renameDir(ctx, from, to)
	} else if err = f.copy(ctx, from, to); err == nil {
		err = f.deleteOne(ctx, from)
	}
	if err != nil || !elsewhere {
		return err
	}
	return f.keepDir(ctx, bench.Parent(from))
}

func (f *fileSystem) renameDir(ctx context.Context, from, to string) error {
	files, err := f.Walk(ctx, from)
	if err != nil {
		return err
	}
	var gone []string
	for len(files) > 0 {
		n := min(copiesAtOnce, len(files))
		err := engine.Local(ctx, n, engine.Each(files[:n]), func(ctx context.Context, s bench.Status) error {
			return f.copy(ctx, s.Path, to+strings.TrimPrefix(s.Path, from))
		})
		if err != nil {
			return err
		}
		for _, s := range files[:n] {
			gone = append(gone, f.root+s.Path)
		}
		files = files[n:]
		if len(gone) == bulkDelete || len(files) == 0 {
			if err := f.deleteMany(ctx, gone); err != nil {
				return err
			}
			gone = gone[:0]
		}
	}
	return nil
}

// keepDir writes the marker of a directory from which the last file has gone.
func (f *fileSystem) keepDir(ctx context.Context, dir string) error {
	there, err := f.isDir(ctx, dir)
	if err != nil || there {
		return err
	}
	return f.Put(ctx, dir+"/", nil)
}
