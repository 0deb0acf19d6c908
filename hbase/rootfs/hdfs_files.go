package rootfs

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"hbackup"
)

func (h *hdfsFS) Stat(ctx context.Context, p string) (info Info, err error) {
	const op = "stat"
	if err := h.check(ctx, op, p); err != nil {
		return Info{}, err
	}
	err = h.call(ctx, op, p, repeatable, func(s *session) error {
		fi, err := s.client.Stat(p)
		if err != nil {
			return err
		}
		info = hdfsInfo(p, fi)
		return nil
	})
	return info, err
}

func (h *hdfsFS) ReadDir(ctx context.Context, p string) (infos []Info, err error) {
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
			return notADirectory(op, h.uri(p))
		}
		entries, err := dir.Readdir(0)
		if err != nil {
			return err
		}
		infos = make([]Info, 0, len(entries))
		for _, fi := range entries {
			infos = append(infos, hdfsInfo(path.Join(p, fi.Name()), fi))
		}
		slices.SortFunc(infos, byName)
		return nil
	})
	return infos, err
}

func (h *hdfsFS) MkdirAll(ctx context.Context, p string) error {
	const op = "make directory"
	if err := h.check(ctx, op, p); err != nil {
		return err
	}
	if p == "/" {
		return nil
	}
	return h.call(ctx, op, p, repeatable, func(s *session) error {
		err := s.client.MkdirAll(p, 0o755)
		if errors.Is(err, os.ErrExist) {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindExists, "there is a file under this name or under that of a parent")
		}
		if err != nil {
			return err
		}
		// The library does not look at the name node's "no".
		fi, err := s.client.Stat(p)
		if err == nil && !fi.IsDir() {
			return hbackup.Errorf(op, h.uri(p), hbackup.KindExists, "there is a file under this name")
		}
		return err
	})
}

func (h *hdfsFS) Remove(ctx context.Context, p string) error {
	return h.remove(ctx, "remove", p, func(s *session) error { return s.client.Remove(p) })
}

func (h *hdfsFS) RemoveAll(ctx context.Context, p string) error {
	return h.remove(ctx, "remove tree", p, func(s *session) error { return s.client.RemoveAll(p) })
}

func (h *hdfsFS) remove(ctx context.Context, op, p string, f func(*session) error) error {
	if err := h.check(ctx, op, p); err != nil {
		return err
	}
	if err := checkNotRoot(op, h.uri(p), p); err != nil {
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

// hdfsInfo makes an Info of the library's; the inode number is only reachable
// through the status message, whose type is internal to the library.
func hdfsInfo(p string, fi os.FileInfo) Info {
	info := Info{Name: path.Base(p), Path: p, Dir: fi.IsDir(), Modified: fi.ModTime().UTC().Truncate(time.Millisecond)}
	if !info.Dir {
		info.Size = fi.Size()
	}
	if status, ok := fi.Sys().(interface{ GetFileId() uint64 }); ok {
		info.ID = status.GetFileId()
	}
	return info
}
