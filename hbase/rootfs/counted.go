package rootfs

import (
	"context"
	"io"
	"sync/atomic"
)

// Counter counts the calls that reach a file system, for tests that state how
// many a piece of work may cost.
type Counter struct {
	Stats, Opens, ReadDirs, Creates, Publishes, Mkdirs, Removes, RemoveAlls atomic.Int64
	// BytesRead and BytesWritten count what went through readers and writers.
	BytesRead, BytesWritten atomic.Int64
	// OpenReaders and OpenWriters are those not ended yet: 0 when all is closed.
	OpenReaders, OpenWriters atomic.Int64
}

// Calls gives the number of calls of every kind.
func (c *Counter) Calls() int64 {
	return c.Stats.Load() + c.Opens.Load() + c.ReadDirs.Load() + c.Creates.Load() + c.Publishes.Load() +
		c.Mkdirs.Load() + c.Removes.Load() + c.RemoveAlls.Load()
}

// Counted gives fs with a counter in front.
func Counted(fs FS) (FS, *Counter) {
	c := &Counter{}
	return &counted{fs, c}, c
}

type counted struct {
	FS
	c *Counter
}

func (f *counted) Stat(ctx context.Context, path string) (Info, error) {
	f.c.Stats.Add(1)
	return f.FS.Stat(ctx, path)
}

func (f *counted) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, Info, error) {
	f.c.Opens.Add(1)
	r, info, err := f.FS.Open(ctx, path, offset)
	if err != nil {
		return nil, info, err
	}
	f.c.OpenReaders.Add(1)
	return &countedReader{ReadCloser: r, c: f.c}, info, nil
}

func (f *counted) ReadDir(ctx context.Context, path string) ([]Info, error) {
	f.c.ReadDirs.Add(1)
	return f.FS.ReadDir(ctx, path)
}

func (f *counted) Create(ctx context.Context, path string) (Writer, error) {
	f.c.Creates.Add(1)
	w, err := f.FS.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	f.c.OpenWriters.Add(1)
	return &countedWriter{Writer: w, c: f.c}, nil
}

func (f *counted) Publish(ctx context.Context, from, to string) error {
	f.c.Publishes.Add(1)
	return f.FS.Publish(ctx, from, to)
}

func (f *counted) MkdirAll(ctx context.Context, path string) error {
	f.c.Mkdirs.Add(1)
	return f.FS.MkdirAll(ctx, path)
}

func (f *counted) Remove(ctx context.Context, path string) error {
	f.c.Removes.Add(1)
	return f.FS.Remove(ctx, path)
}

func (f *counted) RemoveAll(ctx context.Context, path string) error {
	f.c.RemoveAlls.Add(1)
	return f.FS.RemoveAll(ctx, path)
}

type countedReader struct {
	io.ReadCloser
	c      *Counter
	closed atomic.Bool
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.c.BytesRead.Add(int64(n))
	return n, err
}

func (r *countedReader) Close() error {
	if !r.closed.Swap(true) {
		r.c.OpenReaders.Add(-1)
	}
	return r.ReadCloser.Close()
}

type countedWriter struct {
	Writer
	c     *Counter
	ended atomic.Bool
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.c.BytesWritten.Add(int64(n))
	return n, err
}

func (w *countedWriter) Close() error {
	w.end()
	return w.Writer.Close()
}

func (w *countedWriter) Abort() error {
	w.end()
	return w.Writer.Abort()
}

func (w *countedWriter) end() {
	if !w.ended.Swap(true) {
		w.c.OpenWriters.Add(-1)
	}
}
