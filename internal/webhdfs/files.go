package webhdfs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"hbackup"
	"hbackup/internal/files"
)

// Stat describes a file or directory.
func (h *FS) Stat(ctx context.Context, p string) (info files.Info, err error) {
	const op = "stat"
	if err := h.check(ctx, op, p); err != nil {
		return files.Info{}, err
	}
	c := call{op: op, method: http.MethodGet, path: p, query: query("GETFILESTATUS")}
	err = h.ask(ctx, c, func(resp *http.Response) (err error) {
		if err = h.direct(resp); err == nil {
			info, err = readStatus(resp.Body, p)
		}
		return err
	})
	return info, err
}

// direct refuses redirects of calls that are not about data.
func (h *FS) direct(resp *http.Response) error {
	if !isRedirect(resp) {
		return nil
	}
	at := "elsewhere"
	if to, err := resp.Location(); err == nil {
		at = "to " + to.Scheme + "://" + to.Host
	}
	return hbackup.Errorf("ask", "", hbackup.KindUnsupported, "%s redirects %s", resp.Request.URL.Host, at).
		WithHint("give the address under which WebHDFS itself is served, with its scheme")
}

// ReadDirPage gives the entries of a directory that come after a name, at most
// files.PageSize of them. If there are fewer, they were the last. They come in the
// name node's order, which is that of the names' bytes taken as signed numbers.
func (h *FS) ReadDirPage(ctx context.Context, p, after string) (infos []files.Info, err error) {
	const op = "list"
	if err := h.check(ctx, op, p); err != nil {
		return nil, err
	}
	for left := 1; left > 0 && len(infos) < files.PageSize; {
		q := query("LISTSTATUS_BATCH")
		if after != "" {
			q.Set("startAfter", after)
		}
		var batch []files.Info
		c := call{op: op, method: http.MethodGet, path: p, query: q}
		err := h.ask(ctx, c, func(resp *http.Response) (err error) {
			if err = h.direct(resp); err == nil {
				batch, left, err = readListing(resp.Body, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		// HttpFS gives the whole directory each time.
		batch = slices.DeleteFunc(batch, func(f files.Info) bool { return after != "" && !comesAfter(f.Name, after) })
		if n := len(batch); n > 0 {
			after = batch[n-1].Name
		} else if left > 0 {
			return nil, hbackup.Errorf(op, h.uri(p), hbackup.KindUnsupported, "a page of the listing has nothing new")
		}
		infos = append(infos, batch...)
	}
	return infos[:min(len(infos), files.PageSize)], nil
}

// comesAfter compares names as the name node orders them.
func comesAfter(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int8(a[i]) > int8(b[i])
		}
	}
	return len(a) > len(b)
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
	made, err := h.yesOrNo(ctx, call{op: op, method: http.MethodPut, path: p,
		query: query("MKDIRS", "permission", strconv.FormatUint(uint64(h.cfg.DirMode.Perm()), 8))})
	if err == nil && !made {
		return hbackup.Errorf(op, h.uri(p), hbackup.KindExists, "there is a file under this name or under that of a parent")
	}
	return err
}

func (h *FS) yesOrNo(ctx context.Context, c call) (yes bool, err error) {
	err = h.ask(ctx, c, func(resp *http.Response) (err error) {
		if err = h.direct(resp); err == nil {
			yes, err = readBool(resp.Body)
		}
		return err
	})
	return yes, err
}

// Remove removes a file or an empty directory; a missing one is no error.
func (h *FS) Remove(ctx context.Context, p string) error {
	_, err := h.remove(ctx, p)
	return err
}

// remove reports whether there was something to be removed.
func (h *FS) remove(ctx context.Context, p string) (was bool, err error) {
	const op = "remove"
	if err := h.check(ctx, op, p); err != nil {
		return false, err
	}
	if err := files.CheckNotRoot(op, h.uri(p), p); err != nil {
		return false, err
	}
	was, err = h.yesOrNo(ctx, call{op: op, method: http.MethodDelete, path: p, query: query("DELETE", "recursive", "false")})
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	return was, err
}

// RemoveEmptyDir removes a directory if it is empty, and never a file: one may
// have taken the path since somebody looked, and HDFS has one call for both. So
// the directory is named by its inode number. Where the server does not tell that, the
// directory stays (KindUnsupported). One that is not empty is KindConflict, a path
// that is no directory KindNotFound.
func (h *FS) RemoveEmptyDir(ctx context.Context, p string) error {
	const op = "remove directory"
	info, err := h.Stat(ctx, p)
	switch {
	case err != nil:
		return err
	case !info.Dir:
		return hbackup.Errorf(op, h.uri(p), hbackup.KindNotFound, "there is no such directory")
	case info.ID == 0:
		return hbackup.Errorf(op, h.uri(p), hbackup.KindUnsupported, "the server does not tell its number")
	}
	return h.Remove(ctx, inode(info.ID))
}

// inode gives the path of a file by its number.
func inode(id uint64) string { return fmt.Sprintf("/.reserved/.inodes/%d", id) }
