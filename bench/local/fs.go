package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hbackup"
	"hbackup/bench"
)

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
