//go:build unix

package file

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"hbackup"
	"hbackup/storage"
)

// Get opens a file.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := s.check(ctx, "get", key); err != nil {
		return nil, storage.Object{}, err
	}
	f, info, err := s.open(key)
	if err != nil {
		return nil, storage.Object{}, s.err("get", key, err)
	}
	offset, length, err := r.Of(info.Size())
	if err != nil {
		f.Close()
		return nil, storage.Object{}, s.err("get", key, err)
	}
	return &reader{ctx: ctx, s: s, key: key, f: f, at: offset, left: length}, object(key, info), nil
}

// Stat describes a file.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := s.check(ctx, "stat", key); err != nil {
		return storage.Object{}, err
	}
	f, info, err := s.open(key)
	if err != nil {
		return storage.Object{}, s.err("stat", key, err)
	}
	f.Close()
	return object(key, info), nil
}

// open gives errMissing for everything that is no regular file.
func (s *Store) open(key storage.Key) (*os.File, os.FileInfo, error) {
	root, err := s.openRoot()
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	dirs, name := split(key)
	d, err := s.lookUp(root, dirs)
	if err != nil {
		return nil, nil, missing(err)
	}
	defer d.Close()
	full := d.Name() + "/" + name
	fd, err := again(func() (int, error) {
		// Without O_NONBLOCK a named pipe would hang.
		return unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO):
		return nil, nil, errMissing
	case err != nil:
		return nil, nil, missing(pathError("open", full, err))
	}
	f := os.NewFile(uintptr(fd), full)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errMissing
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func missing(err error) error {
	if isNotHere(err) {
		return errMissing
	}
	return err
}

// reader gives a range of a file and fails when the file turns out shorter.
type reader struct {
	ctx  context.Context
	s    *Store
	key  storage.Key
	f    *os.File
	at   int64
	left int64
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, r.s.err("read", r.key, err)
	}
	switch {
	case r.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := r.f.ReadAt(p[:min(int64(len(p)), r.left)], r.at)
	r.at += int64(n)
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left > 0:
		return n, r.s.err("read", r.key, hbackup.Errorf("read", r.f.Name(), hbackup.KindIncomplete, "%d bytes are missing at the end", r.left))
	case err == io.EOF:
		return n, nil
	case err != nil:
		return n, r.s.err("read", r.key, err)
	}
	return n, nil
}

func (r *reader) Close() error { return r.f.Close() }
