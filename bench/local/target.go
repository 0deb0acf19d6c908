// Package local gives the benchmark of committers a directory of this machine.
// There are no requests; what is counted are the calls of the file system that a
// committer asks for, and for our own the calls of the store.
package local

import (
	"context"
	"errors"
	"io/fs"
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
	made  string // the directory itself, when it was not there
}

var _ bench.Target = (*Target)(nil)

// Open gives the folder in a directory, which must be there or have a parent.
func Open(place storage.Place, folder string) (*Target, error) {
	t := &Target{meter: bench.NewMeter(0), root: path.Join(place.Path, folder)}
	s, err := file.Open(storage.Place{Scheme: place.Scheme, Path: t.root})
	if err != nil {
		return nil, err
	}
	switch err := os.Mkdir(place.Path, 0o700); {
	case err == nil:
		t.made = place.Path
	case !errors.Is(err, fs.ErrExist):
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

// Clear removes the folder, and the directory when it was made for it and nobody
// else has used it.
func (t *Target) Clear(context.Context) error {
	if err := os.RemoveAll(t.root); err != nil {
		return fail("remove", t.root, err)
	}
	if t.made != "" {
		_ = os.Remove(t.made) // it stays when something is in it
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
