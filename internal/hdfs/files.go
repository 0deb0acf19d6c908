package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// Stat describes a file or directory.
func (h *FS) Stat(ctx context.Context, p string) (info files.Info, err error) {
	const op = "stat"
	if err := h.check(ctx, op, p); err != nil {
		return files.Info{}, err
	}
	err = h.call(ctx, op, p, repeatable, func(s *session) error {
		fi, err := s.client.Stat(p)
		if err != nil {
			return err
		}
		info = infoOf(p, fi)
		return nil
	})
	return info, err
}

// ReadDir lists a directory, ordered by name.
func (h *FS) ReadDir(ctx context.Context, p string) (infos []files.Info, err error) {
	const op = "list"
	if err := h.check(ctx, op, p); err != nil {
		return nil, err
	}
	err = h.call(ctx, op, p, repeatable, func(s *session) error {
		dir, err := s.client.Open(p)
		if err != nil {
			return err
		}
		defer dir.Close()
		if !dir.Stat().IsDir() {
			return files.NotADirectory(op, h.uri(p))
		}
		entries, err := dir.Readdir(0)
		if err != nil {
			return err
		}
		infos = make([]files.Info, 0, len(entries))
		for _, fi := range entries {
			infos = append(infos, infoOf(path.Join(p, fi.Name()), fi))
		}
		slices.SortFunc(infos, files.ByName)
		return nil
	})
	return infos, err
}

// ReadDirPage gives the entries of a directory that come after a name, at most
// files.PageSize of them. If there are fewer, they were the last. They come in the name
// node's order, which is that of the names' bytes taken as signed numbers: those
// beyond ASCII come before those of ASCII, at each place of the name.
func (h *FS) ReadDirPage(ctx context.Context, p, after string) (infos []files.Info, err error) {
	const op = "list"
	if err := h.check(ctx, op, p); err != nil {
		return nil, err
	}
	err = h.call(ctx, op, p, repeatable, func(s *session) error {
		dir, err := s.client.Open(p)
		if err != nil {
			return err
		}
		defer dir.Close()
		if !dir.Stat().IsDir() {
			return files.NotADirectory(op, h.uri(p))
		}
		s.listAfter(after)
		entries, err := dir.Readdir(files.PageSize)
		if err != nil && err != io.EOF {
			return err
		}
		infos = make([]files.Info, 0, len(entries))
		for _, fi := range entries {
			infos = append(infos, infoOf(path.Join(p, fi.Name()), fi))
		}
		if n := len(infos); n > 0 && infos[n-1].Name == after {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindCorrupt, "the name node lists %q after itself", after)
		}
		return nil
	})
	return infos, err
}

// MkdirAll makes a directory and its parents.
func (h *FS) MkdirAll(ctx context.Context, p string) error {
	const op = "make directory"
	if err := h.check(ctx, op, p); err != nil {
		return err
	}
	if p == "/" {
		return nil
	}
	return h.call(ctx, op, p, repeatable, func(s *session) error {
		s.lookAway()
		err := s.client.MkdirAll(p, h.cfg.DirMode)
		if errors.Is(err, os.ErrExist) {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindExists, "there is a file under this name or under that of a parent")
		}
		if err != nil || s.lastAnswer().made {
			return err
		}
		// The library does not look at the name node's "no", and nobody sees an answer
		// that is sealed.
		fi, err := s.client.Stat(p)
		if err == nil && !fi.IsDir() {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindExists, "there is a file under this name")
		}
		return err
	})
}

// Remove removes a file or an empty directory; a missing one is no error.
func (h *FS) Remove(ctx context.Context, p string) error {
	return h.remove(ctx, "remove", p, func(s *session) error { return s.client.Remove(p) })
}

// RemoveEmptyDir removes a directory if it is empty, and never a file: one may
// have taken the path since somebody looked, and HDFS has one call for both. So
// the directory is named by its inode number. One that is not empty is
// KindConflict, a path that is no directory KindNotFound.
func (h *FS) RemoveEmptyDir(ctx context.Context, p string) error {
	const op = "remove directory"
	info, err := h.Stat(ctx, p)
	switch {
	case err != nil:
		return err
	case !info.Dir || info.ID == 0:
		return hbackup.Errorf(op, h.uri(p), hbackup.KindNotFound, "there is no such directory")
	}
	return h.Remove(ctx, fmt.Sprintf("/.reserved/.inodes/%d", info.ID))
}

// RemoveAll removes a tree; a missing one is no error.
func (h *FS) RemoveAll(ctx context.Context, p string) error {
	return h.remove(ctx, "remove tree", p, func(s *session) error { return s.client.RemoveAll(p) })
}

func (h *FS) remove(ctx context.Context, op, p string, f func(*session) error) error {
	if err := h.check(ctx, op, p); err != nil {
		return err
	}
	if err := files.CheckNotRoot(op, h.uri(p), p); err != nil {
		return err
	}
	err := h.call(ctx, op, p, repeatable, func(s *session) error {
		err := f(s)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if errors.Is(err, syscall.ENOTEMPTY) {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindConflict, "the directory is not empty")
		}
		return err
	})
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil // gone between the library's look and its call
	}
	return err
}

// infoOf makes an Info of the library's; the inode number is only reachable
// through the status message, whose type is internal to the library.
func infoOf(p string, fi os.FileInfo) files.Info {
	info := files.Info{Name: path.Base(p), Path: p, Dir: fi.IsDir(), Modified: fi.ModTime().UTC().Truncate(time.Millisecond)}
	if !info.Dir {
		info.Size = fi.Size()
	}
	if status, ok := fi.Sys().(interface{ GetFileId() uint64 }); ok {
		info.ID = status.GetFileId()
	}
	return info
}
