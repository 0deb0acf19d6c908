package hdfsfs

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"hbackup"
	"hbackup/bench"
	"hbackup/internal/files"
)

// fileSystem is the folder as Hadoop's file system.
type fileSystem Target

func (f *fileSystem) at(p string) string { return path.Join(f.root, p) }

// Put writes a file, which must not be there. Its directory is made when it is
// missing.
func (f *fileSystem) Put(ctx context.Context, p string, data []byte) error {
	w, err := f.fs.Create(ctx, f.at(p))
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		if err := f.Mkdirs(ctx, bench.Parent(p)); err != nil {
			return err
		}
		w, err = f.fs.Create(ctx, f.at(p))
	}
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		w.Abort() // the write's error is the one that counts
		return err
	}
	return w.Close()
}

func (f *fileSystem) Create(ctx context.Context, p string, data []byte) error {
	return f.Put(ctx, p, data)
}

func (f *fileSystem) Save(ctx context.Context, p string, data []byte) error {
	return f.Put(ctx, p, data)
}

func (f *fileSystem) status(info files.Info) bench.Status {
	return bench.Status{Path: strings.TrimPrefix(info.Path, f.root+"/"), Dir: info.Dir, Size: info.Size}
}

// Load reads a file.
func (f *fileSystem) Load(ctx context.Context, p string) (data []byte, err error) {
	r, _, err := f.fs.Open(ctx, f.at(p), 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(r)
}

// Read is the same.
func (f *fileSystem) Read(ctx context.Context, p string) ([]byte, error) { return f.Load(ctx, p) }

// Status asks for it.
func (f *fileSystem) Status(ctx context.Context, p string) (bench.Status, error) {
	info, err := f.fs.Stat(ctx, f.at(p))
	if err != nil {
		return bench.Status{}, err
	}
	return bench.Status{Path: p, Dir: info.Dir, Size: info.Size}, nil
}

// List gives the entries of a directory.
func (f *fileSystem) List(ctx context.Context, dir string) ([]bench.Status, error) {
	infos, err := f.fs.ReadDir(ctx, f.at(dir))
	if err != nil {
		return nil, err
	}
	all := make([]bench.Status, 0, len(infos))
	for _, info := range infos {
		all = append(all, f.status(info))
	}
	return all, nil
}

// Walk lists directory by directory.
func (f *fileSystem) Walk(ctx context.Context, dir string) ([]bench.Status, error) {
	all, err := f.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var found []bench.Status
	for _, s := range all {
		if !s.Dir {
			found = append(found, s)
			continue
		}
		below, err := f.Walk(ctx, s.Path)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// Mkdirs makes a directory and its parents.
func (f *fileSystem) Mkdirs(ctx context.Context, dir string) error {
	return f.fs.MkdirAll(ctx, f.at(dir))
}

// Rename is one call.
func (f *fileSystem) Rename(ctx context.Context, from, to string) error {
	return f.fs.Publish(ctx, files.Info{Path: f.at(from)}, f.at(to), false)
}

// Merge looks at the destination first.
func (f *fileSystem) Merge(ctx context.Context, from, to string) error {
	if _, err := f.fs.Stat(ctx, f.at(to)); err == nil || !hbackup.IsKind(err, hbackup.KindNotFound) {
		return errors.Join(err, hbackup.Errorf("merge", to, hbackup.KindExists, "there is something under this name"))
	}
	return f.Rename(ctx, from, to)
}

// Delete removes a file or a tree.
func (f *fileSystem) Delete(ctx context.Context, p string) error {
	err := f.fs.RemoveAll(ctx, f.at(p))
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	return err
}
