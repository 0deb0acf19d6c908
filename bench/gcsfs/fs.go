package gcsfs

import (
	"context"
	"errors"
	"io"
	"strings"

	lib "cloud.google.com/go/storage"

	"hbackup"
	"hbackup/bench"
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
