package gcsfs

import (
	"context"
	"strings"

	lib "cloud.google.com/go/storage"

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

func (f *fileSystem) wantFree(ctx context.Context, path string) error {
	_, err := f.look(ctx, path)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	if err == nil {
		err = hbackup.Errorf("rename to", "gs://"+f.name+"/"+f.root+path, hbackup.KindExists, "the path is taken")
	}
	return err
}

// Rename looks at all that takes part, then rewrites and deletes, or moves.
func (f *fileSystem) Rename(ctx context.Context, from, to string) error {
	source, err := f.look(ctx, from)
	if err != nil {
		return err
	}
	if err := f.wantFree(ctx, to); err != nil {
		return err
	}
	if there, err := f.isDir(ctx, bench.Parent(to)); err != nil {
		return err
	} else if !there {
		return hbackup.Errorf("rename to", "gs://"+f.name+"/"+f.root+to, hbackup.KindNotFound, "there is no such directory")
	}
	marked, err := f.marked(ctx, bench.Parent(from))
	if err != nil {
		return err
	}
	switch {
	case source.Dir:
		err = f.renameDir(ctx, from, to)
	case f.moves:
		_, err = f.bucket.Object(f.root+from).Move(ctx, lib.MoveObjectDestination{Object: f.root + to})
		if err != nil {
			err = f.fail("move to", f.root+to, err)
		}
	default:
		if err = f.rewrite(ctx, from, to); err == nil {
			err = f.remove(ctx, f.root+from, source.generation)
		}
	}
	if err != nil {
		return err
	}
	return f.mark(ctx, bench.Parent(from), marked)
}

// marked asks whether a directory has a marker, and mark writes it when it had none.
func (f *fileSystem) marked(ctx context.Context, dir string) (bool, error) {
	_, err := f.metadata(ctx, dir+"/")
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (f *fileSystem) mark(ctx context.Context, dir string, marked bool) error {
	if marked {
		return nil
	}
	return f.Put(ctx, dir+"/", nil)
}

func (f *fileSystem) renameDir(ctx context.Context, from, to string) error {
	objects, err := f.below(ctx, from)
	if err != nil {
		return err
	}
	err = engine.Local(ctx, atOnce, engine.Each(objects), func(ctx context.Context, o found) error {
		return f.rewrite(ctx, o.Path, to+strings.TrimPrefix(o.Path, from))
	})
	if err != nil {
		return err
	}
	return f.removeAll(ctx, objects)
}

func (f *fileSystem) removeAll(ctx context.Context, objects []found) error {
	return engine.Local(ctx, atOnce, engine.Each(objects), func(ctx context.Context, o found) error {
		return f.remove(ctx, f.root+o.Path, o.generation)
	})
}

// Delete removes a file or a tree.
func (f *fileSystem) Delete(ctx context.Context, path string) error {
	s, err := f.look(ctx, path)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	marked, err := f.marked(ctx, bench.Parent(path))
	if err != nil {
		return err
	}
	if s.Dir {
		var objects []found
		if objects, err = f.below(ctx, path); err != nil {
			return err
		}
		if err = f.removeAll(ctx, objects); err == nil {
			err = f.remove(ctx, f.root+path+"/", 0)
		}
	} else {
		err = f.remove(ctx, f.root+path, s.generation)
	}
	if err != nil {
		return err
	}
	return f.mark(ctx, bench.Parent(path), marked)
}
