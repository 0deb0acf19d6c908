package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// memFS is a file system in memory whose files can be renamed at chosen moments.
type memFS struct {
	mu    sync.Mutex
	files map[string]*memFile
	looks []string          // paths in the order in which they were asked for
	after func(look string) // called after each, without the lock
	lists int
}

type memFile struct {
	data []byte
	id   uint64
}

func newMemFS(files map[string]string) *memFS {
	fs := &memFS{files: map[string]*memFile{}}
	for p, data := range files {
		fs.files[p] = &memFile{[]byte(data), uint64(len(fs.files) + 1)}
	}
	return fs
}

func (fs *memFS) URI() string { return "mem://fs" }

func (fs *memFS) look(p string) (*memFile, rootfs.Info, error) {
	fs.mu.Lock()
	f := fs.files[p]
	fs.looks = append(fs.looks, p)
	fs.mu.Unlock()
	if fs.after != nil {
		fs.after(p)
	}
	if f == nil {
		return nil, rootfs.Info{}, hbackup.Errorf("look", "mem://fs"+p, hbackup.KindNotFound, "no such file")
	}
	return f, rootfs.Info{Name: path.Base(p), Path: p, Size: int64(len(f.data)), ID: f.id}, nil
}

func (fs *memFS) Stat(_ context.Context, p string) (rootfs.Info, error) {
	_, info, err := fs.look(p)
	return info, err
}

func (fs *memFS) Open(_ context.Context, p string, offset int64) (io.ReadCloser, rootfs.Info, error) {
	f, info, err := fs.look(p)
	if err != nil {
		return nil, info, err
	}
	return &memReader{fs: fs, path: p, rest: bytes.NewReader(f.data[offset:])}, info, nil
}

func (fs *memFS) ReadDir(_ context.Context, dir string) ([]rootfs.Info, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.lists++
	var out []rootfs.Info
	for p, f := range fs.files {
		if path.Dir(p) == dir {
			out = append(out, rootfs.Info{Name: path.Base(p), Path: p, Size: int64(len(f.data)), ID: f.id})
		}
	}
	if out == nil {
		return nil, hbackup.Errorf("list", dir, hbackup.KindNotFound, "no such directory")
	}
	slices.SortFunc(out, func(a, b rootfs.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (fs *memFS) rename(from, to string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.files[from]; f != nil {
		delete(fs.files, from)
		fs.files[to] = f
	}
}

// memReader fails once its file has gone from its path, as a reader of HDFS may
// when it needs the next block.
type memReader struct {
	fs     *memFS
	path   string
	rest   *bytes.Reader
	closed bool
}

func (r *memReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, errors.New("read after close")
	}
	r.fs.mu.Lock()
	_, there := r.fs.files[r.path]
	r.fs.mu.Unlock()
	if !there {
		return 0, hbackup.Errorf("read", r.path, hbackup.KindNotFound, "no such file")
	}
	return r.rest.Read(p[:min(len(p), 7)])
}

func (r *memReader) Close() error { r.closed = true; return nil }
