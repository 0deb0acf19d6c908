package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"hbackup"
	"hbackup/internal/files"
)

// Local gives the file system of this machine, for stand-alone HBase servers
// whose root is a file:// directory. Paths are the machine's own.
//
// Hadoop keeps checksums of a local file "x" in a hidden file ".x.crc" beside
// it. Like Hadoop, ReadDir does not show those, and removing or creating a file
// removes the one that belonged to its name: HBase would hold new content
// against old checksums.
func Local() FS { return local{} }

type local struct{}

func (local) URI() string  { return "file://" }
func (local) Close() error { return nil }

func (l local) Stat(ctx context.Context, path string) (Info, error) {
	if err := l.check(ctx, "stat", path); err != nil {
		return Info{}, err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return Info{}, localError("stat", path, err)
	}
	return localInfo(path, fi), nil
}

func (l local) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, Info, error) {
	const op = "open"
	if err := l.check(ctx, op, path); err != nil {
		return nil, Info{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Info{}, localError(op, path, err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, Info{}, localError(op, path, err)
	}
	info := localInfo(path, fi)
	if err := files.CheckReadable(op, "file://"+path, info, offset); err != nil {
		f.Close()
		return nil, Info{}, err
	}
	if !fi.Mode().IsRegular() {
		f.Close()
		return nil, Info{}, hbackup.Errorf(op, "file://"+path, hbackup.KindUnsupported, "not a regular file (%s)", fi.Mode().Type())
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		f.Close()
		return nil, Info{}, localError(op, path, err)
	}
	return &localReader{ctx: ctx, f: f, path: path, left: info.Size - offset}, info, nil
}

func (l local) ReadDir(ctx context.Context, path string) ([]Info, error) {
	const op = "list"
	if err := l.check(ctx, op, path); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		if fi, statErr := os.Stat(path); statErr == nil && !fi.IsDir() {
			return nil, files.NotADirectory(op, "file://"+path)
		}
		return nil, localError(op, path, err)
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		if isHadoopChecksum(e.Name()) {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the listing
		}
		if err != nil {
			return nil, localError(op, filepath.Join(path, e.Name()), err)
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			if fi, err = os.Stat(filepath.Join(path, e.Name())); err != nil {
				continue // a link that leads nowhere is no file
			}
		}
		info := localInfo(filepath.Join(path, e.Name()), fi)
		info.Name = e.Name()
		infos = append(infos, info)
	}
	slices.SortFunc(infos, files.ByName)
	return infos, nil
}

func (l local) MkdirAll(ctx context.Context, path string) error {
	if err := l.check(ctx, "make directory", path); err != nil {
		return err
	}
	// The parents that are new must be durable too, so each is synced into its
	// own parent, from the deepest that existed.
	var missing []string
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		missing = append(missing, p)
	}
	if err := os.MkdirAll(path, 0o755); errors.Is(err, syscall.ENOTDIR) {
		return hbackup.Errorf("make directory", "file://"+path, hbackup.KindExists, "there is a file under this name or under that of a parent")
	} else if err != nil {
		return localError("make directory", path, err)
	}
	for _, p := range slices.Backward(missing) {
		if err := syncDir(filepath.Dir(p)); err != nil {
			return localError("make directory", path, err)
		}
	}
	return nil
}

func (l local) Remove(ctx context.Context, path string) error {
	const op = "remove"
	if err := l.checkRemovable(ctx, op, path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !missing(err) {
		return localError(op, path, err)
	}
	if err := os.Remove(hadoopChecksum(path)); err != nil && !missing(err) {
		return localError(op, hadoopChecksum(path), err)
	}
	return nil
}

func (l local) RemoveAll(ctx context.Context, path string) error {
	const op = "remove tree"
	if err := l.checkRemovable(ctx, op, path); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil && !missing(err) {
		return localError(op, path, err)
	}
	if err := os.Remove(hadoopChecksum(path)); err != nil && !missing(err) {
		return localError(op, hadoopChecksum(path), err)
	}
	return nil
}

func (local) check(ctx context.Context, op, path string) error {
	if err := files.CheckPath(op, "file://"+path, path); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return hbackup.E(op, "file://"+path, hbackup.KindOther, context.Cause(ctx))
	}
	return nil
}

func (l local) checkRemovable(ctx context.Context, op, path string) error {
	if err := l.check(ctx, op, path); err != nil {
		return err
	}
	return files.CheckNotRoot(op, "file://"+path, path)
}

// localReader reads what the file held when it was opened: a file that has
// grown since is cut, one that has shrunk is an error.
type localReader struct {
	ctx  context.Context
	f    *os.File
	path string
	left int64
}

func (r *localReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, hbackup.E("read", "file://"+r.path, hbackup.KindOther, context.Cause(r.ctx))
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.f.Read(p)
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left > 0:
		return n, hbackup.Errorf("read", "file://"+r.path, hbackup.KindIncomplete, "the file ends %d bytes before the length it was opened with", r.left)
	case err == io.EOF:
		return n, nil
	case err != nil:
		return n, localError("read", r.path, err)
	}
	return n, nil
}

func (r *localReader) Close() error {
	if err := r.f.Close(); err != nil {
		return localError("close", r.path, err)
	}
	return nil
}

func localInfo(path string, fi fs.FileInfo) Info {
	info := Info{Name: filepath.Base(path), Path: filepath.Clean(path), Dir: fi.IsDir(), Modified: fi.ModTime().UTC()}
	if !info.Dir {
		info.Size = fi.Size()
	}
	return info
}

// hadoopChecksum gives the path where Hadoop keeps the checksums of a local file.
func hadoopChecksum(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".crc")
}

func isHadoopChecksum(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".crc")
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func localError(op, path string, err error) error {
	kind, hint := hbackup.KindOther, ""
	switch {
	case missing(err):
		kind = hbackup.KindNotFound
	case errors.Is(err, syscall.EROFS):
		kind = hbackup.KindReadOnly
	case errors.Is(err, fs.ErrPermission):
		kind, hint = hbackup.KindDenied, "run as the user that HBase runs as, or give this user the right"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind, hint = hbackup.KindNoSpace, "free some space on the file system, or raise its quota"
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EISDIR):
		kind = hbackup.KindConflict
	case errors.Is(err, fs.ErrExist): // ENOTEMPTY counts as such, so it is asked before
		kind = hbackup.KindExists
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		kind = hbackup.KindUsage
	case errors.Is(err, syscall.EIO):
		kind, hint = hbackup.KindCorrupt, "the disk reports an input/output error; see the kernel log"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		kind, hint = hbackup.KindUnavailable, "raise the limit of open files (ulimit -n)"
	}
	// The path is in the error already; os.PathError would repeat it.
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	e := hbackup.E(op, "file://"+path, kind, err)
	if hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}
