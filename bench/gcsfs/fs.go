package gcsfs

import (
	"context"
	"errors"
	"io"
	"strings"

	lib "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/bench"
	"hbackup/engine"
)

// fileSystem is the folder as a file system.
type fileSystem struct {
	*Target
	moves bool // files are renamed by the service's move
}

// found is what a look at a path gave.
type found struct {
	bench.Status
	generation int64
}

// The single requests.

func (f *fileSystem) metadata(ctx context.Context, path string) (found, error) {
	o, err := f.bucket.Object(f.root + path).Attrs(ctx)
	if err != nil {
		return found{}, f.fail("look at", f.root+path, err)
	}
	return found{bench.Status{Path: path, Size: o.Size}, o.Generation}, nil
}

// isDir asks for the first names below a path.
func (f *fileSystem) isDir(ctx context.Context, path string) (bool, error) {
	prefix := f.root + path + "/"
	q := &lib.Query{Prefix: prefix}
	if err := q.SetAttrSelection([]string{"Name"}); err != nil {
		return false, f.fail("list", prefix, err)
	}
	it := f.bucket.Objects(ctx, q)
	it.PageInfo().MaxSize = 2
	_, err := it.Next()
	if errors.Is(err, iterator.Done) {
		return false, nil
	}
	if err != nil {
		return false, f.fail("list", prefix, err)
	}
	return true, nil
}

// Put writes an object with one request.
func (f *fileSystem) Put(ctx context.Context, path string, data []byte) error {
	w := f.bucket.Object(f.root + path).NewWriter(ctx)
	w.ChunkSize = 0
	_, err := w.Write(data)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return f.fail("insert", f.root+path, err)
	}
	return nil
}

func (f *fileSystem) rewrite(ctx context.Context, from, to string) error {
	o, err := f.bucket.Object(f.root + to).CopierFrom(f.bucket.Object(f.root + from)).Run(ctx)
	if err != nil {
		return f.fail("rewrite to", f.root+to, err)
	}
	f.meter.Copied(o.Size)
	return nil
}

// What the connector makes of them.

func (f *fileSystem) look(ctx context.Context, path string) (found, error) {
	s, err := f.metadata(ctx, path)
	if !hbackup.IsKind(err, hbackup.KindNotFound) {
		return s, err
	}
	dir, derr := f.isDir(ctx, path)
	if derr != nil {
		return found{}, derr
	}
	if !dir {
		return found{}, err
	}
	return found{Status: bench.Status{Path: path, Dir: true}}, nil
}

// Status is getFileInfo.
func (f *fileSystem) Status(ctx context.Context, path string) (bench.Status, error) {
	s, err := f.look(ctx, path)
	return s.Status, err
}

// Create looks whether there is a directory of the name first.
func (f *fileSystem) Create(ctx context.Context, path string, data []byte) error {
	if _, err := f.metadata(ctx, path+"/"); !hbackup.IsKind(err, hbackup.KindNotFound) {
		if err == nil {
			err = hbackup.Errorf("create", "gs://"+f.name+"/"+f.root+path, hbackup.KindConflict, "it is a directory")
		}
		return err
	}
	return f.Put(ctx, path, data)
}

// Save is the same.
func (f *fileSystem) Save(ctx context.Context, path string, data []byte) error {
	return f.Create(ctx, path, data)
}

// Load reads an object.
func (f *fileSystem) Load(ctx context.Context, path string) (data []byte, err error) {
	r, err := f.bucket.Object(f.root + path).NewReader(ctx)
	if err != nil {
		return nil, f.fail("get", f.root+path, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if data, err = io.ReadAll(r); err != nil {
		return nil, f.fail("get", f.root+path, err)
	}
	return data, nil
}

// Read looks first.
func (f *fileSystem) Read(ctx context.Context, path string) ([]byte, error) {
	if _, err := f.metadata(ctx, path); err != nil {
		return nil, err
	}
	return f.Load(ctx, path)
}

// List is listFileInfo: the path might be a file.
func (f *fileSystem) List(ctx context.Context, dir string) ([]bench.Status, error) {
	if s, err := f.metadata(ctx, dir); err == nil {
		return []bench.Status{s.Status}, nil
	} else if !hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, err
	}
	var all []bench.Status
	err := f.each(ctx, f.root+dir+"/", "/", func(o *lib.ObjectAttrs) {
		if o.Prefix != "" {
			all = append(all, bench.Status{Path: strings.TrimSuffix(strings.TrimPrefix(o.Prefix, f.root), "/"), Dir: true})
		} else {
			all = append(all, bench.Status{Path: strings.TrimPrefix(o.Name, f.root), Size: o.Size})
		}
	})
	return sorted(all), err
}

// below gives all objects in a directory, markers too.
func (f *fileSystem) below(ctx context.Context, dir string) ([]found, error) {
	var all []found
	err := f.each(ctx, f.root+dir+"/", "", func(o *lib.ObjectAttrs) {
		all = append(all, found{bench.Status{Path: strings.TrimPrefix(o.Name, f.root), Size: o.Size}, o.Generation})
	})
	return all, err
}

// Walk gives all files in a directory.
func (f *fileSystem) Walk(ctx context.Context, dir string) ([]bench.Status, error) {
	objects, err := f.below(ctx, dir)
	var all []bench.Status
	for _, o := range objects {
		if !strings.HasSuffix(o.Path, "/") {
			all = append(all, o.Status)
		}
	}
	return all, err
}

// Mkdirs writes the marker of the directory.
func (f *fileSystem) Mkdirs(ctx context.Context, dir string) error { return f.Put(ctx, dir+"/", nil) }

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
