package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"hbackup"
)

// workDir is where the servers of one start keep their files.
type workDir struct {
	dir   string
	owner *os.File // of a temporary directory: its lock file, locked as long as we live
}

// ownerFile marks a temporary directory that goes away with its process. When
// nobody has it locked any more the process died without cleaning up.
const ownerFile = "owner.lock"

// newWorkDir takes the directory, or makes a temporary one when it is "".
func newWorkDir(dir, name string) (*workDir, error) {
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, hbackup.E("make the directory", dir, hbackup.KindOther, err)
		}
		return &workDir{dir: dir}, nil
	}
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", "hbackup-"+name+"-")
	if err != nil {
		return nil, err
	}
	// Locked under another name first, so that nobody sees it without its lock.
	pending := filepath.Join(dir, "pending")
	owner, err := os.OpenFile(pending, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	if err := os.Rename(pending, filepath.Join(dir, ownerFile)); err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	return &workDir{dir: dir, owner: owner}, nil
}

// sweep removes the temporary directories of processes that were killed. What
// cannot be looked at or removed belongs to somebody else and stays.
func sweep(temp string) {
	owners, err := filepath.Glob(filepath.Join(temp, "hbackup-*", ownerFile))
	if err != nil {
		return
	}
	for _, path := range owners {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(path))
		}
		f.Close()
	}
}

func (w *workDir) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// remove deletes a temporary directory; another one stays.
func (w *workDir) remove() error {
	if w.owner == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(w.dir), w.owner.Close())
}

// keep leaves a temporary directory to whoever wants to look at its logs.
func (w *workDir) keep() error {
	if w.owner == nil {
		return nil
	}
	err := errors.Join(os.Remove(w.path(ownerFile)), w.owner.Close())
	w.owner = nil
	return err
}

// afterFailure ends a start that failed. The directory is kept unless the
// caller gave up.
func (w *workDir) afterFailure(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		w.keep()
		return err
	}
	return errors.Join(err, w.remove())
}

// newFile makes an empty file whose name has something unique for the "*".
func newFile(pattern string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(pattern), filepath.Base(pattern))
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
