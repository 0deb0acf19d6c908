package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"hbackup"
	"hbackup/internal/files"
)

// Create makes the file at its final path, exclusively. A crash leaves a torn
// file there, as on HDFS: the caller's names must be its own.
func (l local) Create(ctx context.Context, path string) (Writer, error) {
	const op = "create"
	if err := l.check(ctx, op, path); err != nil {
		return nil, err
	}
	if err := files.CheckNotRoot(op, "file://"+path, path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, hbackup.Errorf(op, "file://"+path, hbackup.KindConflict, "a parent of the path is a file")
	}
	if err != nil {
		return nil, localError(op, path, err)
	}
	if err := os.Remove(hadoopChecksum(path)); err != nil && !missing(err) {
		f.Close()
		os.Remove(path)
		return nil, localError(op, hadoopChecksum(path), err)
	}
	return &localWriter{ctx: ctx, f: f, path: path}, nil
}

type localWriter struct {
	ctx     context.Context
	f       *os.File
	path    string
	written int64
	own     os.FileInfo // of the file itself, once the writer has ended
	err     error       // the first failure, or files.ErrEnded
}

func (w *localWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, hbackup.E("write", "file://"+w.path, hbackup.KindOther, w.err)
	}
	if w.ctx.Err() != nil {
		w.err = hbackup.E("write", "file://"+w.path, hbackup.KindOther, context.Cause(w.ctx))
		return 0, w.err
	}
	n, err := w.f.Write(p)
	w.written += int64(n)
	if err != nil {
		w.err = localError("write", w.path, err)
		return n, w.err
	}
	return n, nil
}

func (w *localWriter) Close() error {
	const op = "close"
	if w.err == files.ErrEnded {
		return hbackup.E(op, "file://"+w.path, hbackup.KindOther, files.ErrEnded)
	}
	err := w.err
	if err == nil && w.ctx.Err() != nil {
		err = hbackup.E(op, "file://"+w.path, hbackup.KindOther, context.Cause(w.ctx))
	}
	if err == nil {
		err = w.f.Sync()
	}
	if err == nil {
		var fi os.FileInfo
		if fi, err = w.f.Stat(); err == nil && fi.Size() != w.written {
			err = hbackup.Errorf(op, "file://"+w.path, hbackup.KindConflict, "%d bytes written but the file holds %d: somebody else writes to it", w.written, fi.Size())
		}
	}
	w.own, _ = w.f.Stat()
	if err == nil && !w.isThere() {
		err = hbackup.Errorf(op, "file://"+w.path, hbackup.KindConflict, "somebody else has removed the file, or put another in its place")
	}
	if closeErr := w.f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = syncDir(filepath.Dir(w.path))
	}
	w.err = files.ErrEnded
	if err == nil {
		return nil
	}
	w.remove()
	var typed *hbackup.Error
	if errors.As(err, &typed) {
		return err
	}
	return localError(op, w.path, err)
}

func (w *localWriter) Abort() error {
	if w.err == files.ErrEnded {
		return hbackup.E("abort", "file://"+w.path, hbackup.KindOther, files.ErrEnded)
	}
	w.err = files.ErrEnded
	w.own, _ = w.f.Stat()
	w.f.Close()
	if err := w.remove(); err != nil {
		return localError("abort", w.path, err)
	}
	return nil
}

// isThere reports whether the writer's own file still has its name.
func (w *localWriter) isThere() bool {
	there, err := os.Lstat(w.path)
	return err == nil && w.own != nil && os.SameFile(there, w.own)
}

// remove takes the writer's own file away, but not another that somebody has
// written under its name since.
func (w *localWriter) remove() error {
	if w.own != nil && !w.isThere() {
		return nil
	}
	if err := os.Remove(w.path); err != nil && !missing(err) {
		return err
	}
	return nil
}

// Publish links the file under its new name and takes the old one away. A link
// never replaces.
func (l local) Publish(ctx context.Context, from, to string) error {
	const op = "publish"
	for _, path := range []string{from, to} {
		if err := l.checkRemovable(ctx, op, path); err != nil {
			return err
		}
	}
	if err := os.Link(from, to); err != nil {
		var le *os.LinkError
		if errors.As(err, &le) {
			err = le.Err
		}
		return localError(op, to, err)
	}
	if err := os.Remove(hadoopChecksum(to)); err != nil && !missing(err) {
		return localError(op, hadoopChecksum(to), err)
	}
	if err := os.Remove(from); err != nil && !missing(err) {
		return localError(op, from, err)
	}
	for _, path := range []string{to, from} {
		if err := syncDir(filepath.Dir(path)); err != nil {
			return localError(op, path, err)
		}
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}
