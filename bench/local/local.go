// Package local gives the benchmark of committers a directory of this machine.
// There are no requests; what is counted are the calls of the file system that a
// committer asks for, and for our own the calls of the store.
package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hbackup"
	"hbackup/bench"
	"hbackup/storage"
	"hbackup/storage/file"
)

// Target is a folder in a directory.
type Target struct {
	store *counted
	meter *bench.Meter
	root  string
}

var _ bench.Target = (*Target)(nil)

// Open gives the folder in a directory, which must be there or have a parent.
func Open(place storage.Place, folder string) (*Target, error) {
	t := &Target{meter: bench.NewMeter(0), root: path.Join(place.Path, folder)}
	s, err := file.Open(storage.Place{Scheme: place.Scheme, Path: t.root})
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(place.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail("make directory", place.Path, err)
	}
	t.store = &counted{s, t.meter}
	return t, nil
}

func (t *Target) Store() storage.Store       { return t.store }
func (t *Target) FS(bench.Protocol) bench.FS { return (*fileSystem)(t) }
func (t *Target) Uploads() bench.Uploads     { return nil }
func (t *Target) Meter() *bench.Meter        { return t.meter }
func (t *Target) Close() error               { return t.store.Close() }

// Names lists everything in a directory; directories count only when they are empty.
func (t *Target) Names(ctx context.Context, dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(filepath.Join(t.root, dir), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !d.IsDir():
			names = append(names, strings.TrimPrefix(p, t.root+"/"))
			return nil
		}
		entries, err := os.ReadDir(p)
		if err == nil && len(entries) == 0 {
			names = append(names, strings.TrimPrefix(p, t.root+"/")+"/")
		}
		return err
	})
	if err != nil {
		return nil, fail("list", path.Join(t.root, dir), err)
	}
	return names, nil
}

// Clear removes the folder.
func (t *Target) Clear(context.Context) error {
	if err := os.RemoveAll(t.root); err != nil {
		return fail("remove", t.root, err)
	}
	return nil
}

func fail(op, path string, err error) error {
	kind := hbackup.KindOther
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = hbackup.KindNotFound
	case errors.Is(err, fs.ErrExist):
		kind = hbackup.KindExists
	case errors.Is(err, fs.ErrPermission):
		kind = hbackup.KindDenied
	}
	return hbackup.E(op, "file://"+path, kind, err)
}

// fileSystem is the folder as Hadoop's local file system, without its checksum
// files.
type fileSystem Target

func (f *fileSystem) at(p string) string { return filepath.Join(f.root, p) }

func (f *fileSystem) call(ctx context.Context, kind string) error { return f.meter.Request(ctx, kind) }

// Put writes a file, with its directory.
func (f *fileSystem) Put(ctx context.Context, p string, data []byte) error {
	if err := f.call(ctx, "create"); err != nil {
		return err
	}
	f.meter.Moved(int64(len(data)), 0)
	err := os.WriteFile(f.at(p), data, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.Mkdirs(ctx, bench.Parent(p)); err != nil {
			return err
		}
		err = os.WriteFile(f.at(p), data, 0o600)
	}
	if err != nil {
		return fail("write", f.at(p), err)
	}
	return nil
}

func (f *fileSystem) Create(ctx context.Context, p string, data []byte) error {
	return f.Put(ctx, p, data)
}

func (f *fileSystem) Save(ctx context.Context, p string, data []byte) error {
	return f.Put(ctx, p, data)
}

func (f *fileSystem) Load(ctx context.Context, p string) ([]byte, error) {
	if err := f.call(ctx, "open"); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(f.at(p))
	if err != nil {
		return nil, fail("read", f.at(p), err)
	}
	f.meter.Moved(0, int64(len(b)))
	return b, nil
}

func (f *fileSystem) Read(ctx context.Context, p string) ([]byte, error) { return f.Load(ctx, p) }

func (f *fileSystem) Status(ctx context.Context, p string) (bench.Status, error) {
	if err := f.call(ctx, "stat"); err != nil {
		return bench.Status{}, err
	}
	info, err := os.Lstat(f.at(p))
	if err != nil {
		return bench.Status{}, fail("look at", f.at(p), err)
	}
	return bench.Status{Path: p, Dir: info.IsDir(), Size: info.Size()}, nil
}

func (f *fileSystem) List(ctx context.Context, dir string) ([]bench.Status, error) {
	if err := f.call(ctx, "list"); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.at(dir))
	if err != nil {
		return nil, fail("list", f.at(dir), err)
	}
	var all []bench.Status
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, fail("list", f.at(dir), err)
		}
		all = append(all, bench.Status{Path: dir + "/" + e.Name(), Dir: e.IsDir(), Size: info.Size()})
	}
	return all, nil
}

func (f *fileSystem) Walk(ctx context.Context, dir string) ([]bench.Status, error) {
	all, err := f.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var files []bench.Status
	for _, s := range all {
		if !s.Dir {
			files = append(files, s)
			continue
		}
		below, err := f.Walk(ctx, s.Path)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

func (f *fileSystem) Mkdirs(ctx context.Context, dir string) error {
	if err := f.call(ctx, "mkdir"); err != nil {
		return err
	}
	if err := os.MkdirAll(f.at(dir), 0o700); err != nil {
		return fail("make directory", f.at(dir), err)
	}
	return nil
}

func (f *fileSystem) Rename(ctx context.Context, from, to string) error {
	if err := f.call(ctx, "rename"); err != nil {
		return err
	}
	if err := os.Rename(f.at(from), f.at(to)); err != nil {
		return fail("rename", f.at(from), err)
	}
	return nil
}

func (f *fileSystem) Merge(ctx context.Context, from, to string) error {
	if _, err := f.Status(ctx, to); !hbackup.IsKind(err, hbackup.KindNotFound) {
		if err == nil {
			err = fail("rename to", f.at(to), fs.ErrExist)
		}
		return err
	}
	return f.Rename(ctx, from, to)
}

func (f *fileSystem) Delete(ctx context.Context, p string) error {
	if err := f.call(ctx, "delete"); err != nil {
		return err
	}
	if err := os.RemoveAll(f.at(p)); err != nil {
		return fail("delete", f.at(p), err)
	}
	return nil
}

// counted is the product's store, whose calls are counted.
type counted struct {
	storage.Store
	meter *bench.Meter
}

func (c *counted) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := c.meter.Request(ctx, "put"); err != nil {
		return storage.Object{}, err
	}
	o, err := c.Store.Put(ctx, key, body, opts)
	if err == nil {
		c.meter.Moved(o.Size, 0)
	}
	return o, err
}

func (c *counted) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := c.meter.Request(ctx, "get"); err != nil {
		return nil, storage.Object{}, err
	}
	return c.Store.Get(ctx, key, r)
}

func (c *counted) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := c.meter.Request(ctx, "stat"); err != nil {
		return storage.Object{}, err
	}
	return c.Store.Stat(ctx, key)
}

func (c *counted) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := c.meter.Request(ctx, "list"); err != nil {
			yield(storage.Object{}, err)
			return
		}
		c.Store.List(ctx, prefix, opts)(yield)
	}
}

func (c *counted) Delete(ctx context.Context, key storage.Key) error {
	if err := c.meter.Request(ctx, "delete"); err != nil {
		return err
	}
	return c.Store.Delete(ctx, key)
}
