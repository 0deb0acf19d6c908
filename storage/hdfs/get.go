package hdfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// Stat describes a file.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := s.check(ctx, "stat", key); err != nil {
		return storage.Object{}, err
	}
	info, err := s.fs.Stat(ctx, s.at(string(key)))
	if err == nil && info.Dir || isNotHere(err) {
		err = errMissing
	}
	if err != nil {
		return storage.Object{}, s.err("stat", key, err)
	}
	return object(key, info), nil
}

// Get opens a file.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := s.check(ctx, "get", key); err != nil {
		return nil, storage.Object{}, err
	}
	// The range may be checked for sense only: the size is not known yet.
	if _, _, err := r.Of(max(r.Offset, 0)); err != nil {
		return nil, storage.Object{}, s.err("get", key, err)
	}
	own, cancel := context.WithCancel(ctx)
	in, info, err := s.open(own, s.at(string(key)), r.Offset)
	if err != nil {
		cancel()
		return nil, storage.Object{}, s.err("get", key, err)
	}
	_, length, err := r.Of(info.Size)
	if err != nil {
		in.Close()
		cancel()
		return nil, storage.Object{}, s.err("get", key, err)
	}
	return &reader{ctx: ctx, cancel: cancel, s: s, key: key, in: in, left: length}, object(key, info), nil
}

// maxReplaced is how often a file may be replaced while it is opened.
const maxReplaced = 20

// open opens the file and gets its first byte. The object of an overwritten key
// is another file, so one that is replaced in between is opened once more.
func (s *Store) open(ctx context.Context, path string, offset int64) (io.ReadCloser, files.Info, error) {
	for replaced := 0; ; replaced++ {
		in, info, err := s.fs.Open(ctx, path, offset)
		if err == nil && offset < info.Size {
			var first [1]byte
			if _, err = io.ReadFull(in, first[:]); err == nil {
				return &withFirst{ReadCloser: in, first: bytes.NewReader(first[:])}, info, nil
			}
			in.Close()
		}
		switch {
		case err == nil:
			return in, info, nil
		case errors.Is(err, files.ErrReplaced) && replaced < maxReplaced:
		case errors.Is(err, files.ErrReplaced):
			return nil, info, hbackup.E("open", path, hbackup.KindUnavailable, err)
		case isNotHere(err):
			return nil, info, errMissing
		default:
			return nil, info, err
		}
	}
}

// withFirst puts the first byte before the others.
type withFirst struct {
	io.ReadCloser
	first *bytes.Reader
}

func (r *withFirst) Read(p []byte) (int, error) {
	if r.first.Len() > 0 {
		return r.first.Read(p)
	}
	return r.ReadCloser.Read(p)
}

// reader gives a range of a file. The file system's reader fails by itself when
// the file turns out shorter.
type reader struct {
	ctx    context.Context
	cancel context.CancelFunc
	s      *Store
	key    storage.Key

	mu     sync.Mutex // held while in is used
	in     io.ReadCloser
	left   int64
	closed bool
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch err := r.ctx.Err(); {
	case r.closed:
		return 0, r.s.err("read", r.key, errors.New("the reader is closed"))
	case err != nil:
		return 0, r.s.err("read", r.key, err)
	case r.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left > 0:
		return n, r.s.err("read", r.key, hbackup.Errorf("read", "", hbackup.KindIncomplete, "%d bytes are missing at the end", r.left))
	case err == io.EOF || err == nil:
		return n, nil
	}
	return n, r.s.err("read", r.key, err)
}

// Close ends a Read that is under way, too.
func (r *reader) Close() error {
	if !r.mu.TryLock() {
		r.cancel()
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	defer r.cancel()
	if r.closed {
		return nil
	}
	r.closed = true
	if err := r.in.Close(); err != nil {
		return r.s.err("close", r.key, err)
	}
	return nil
}
