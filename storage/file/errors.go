//go:build unix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"hbackup"
	"hbackup/storage"
)

var (
	errMissing = errors.New("there is no such object")
	errTaken   = errors.New("there is an object already")
)

// notDir is met where a directory is needed and something else is there.
type notDir struct{ path string }

func (e notDir) Error() string { return e.path + " is not a directory" }

// kinds classes the errors of a file system.
var kinds = map[syscall.Errno]hbackup.Kind{
	syscall.ENOSPC:       hbackup.KindNoSpace,
	syscall.EDQUOT:       hbackup.KindNoSpace,
	syscall.EROFS:        hbackup.KindReadOnly,
	syscall.EACCES:       hbackup.KindDenied,
	syscall.EPERM:        hbackup.KindDenied,
	syscall.ENAMETOOLONG: hbackup.KindUsage,
	syscall.EFBIG:        hbackup.KindUnsupported,
	syscall.EXDEV:        hbackup.KindUnsupported,
	syscall.EMLINK:       hbackup.KindUnsupported,
	syscall.ENOTSUP:      hbackup.KindUnsupported,
	syscall.EIO:          hbackup.KindUnavailable,
	syscall.ESTALE:       hbackup.KindUnavailable,
	syscall.ETIMEDOUT:    hbackup.KindUnavailable,
	syscall.EHOSTDOWN:    hbackup.KindUnavailable,
	syscall.EMFILE:       hbackup.KindUnavailable,
	syscall.ENFILE:       hbackup.KindUnavailable,
}

func kindOf(err error) hbackup.Kind {
	var errno syscall.Errno
	var nd notDir
	switch {
	case hbackup.KindOf(err) != hbackup.KindOther:
		return hbackup.KindOf(err)
	case errors.As(err, &nd):
		return hbackup.KindConflict
	case errors.Is(err, errMissing):
		return hbackup.KindNotFound
	case errors.Is(err, errTaken):
		return hbackup.KindExists
	case errors.As(err, &errno):
		return kinds[errno]
	}
	return hbackup.KindOther
}

// err makes the error of a method; its path is the object's full name.
func (s *Store) err(op string, key storage.Key, cause error) error {
	e := hbackup.E(op, s.location.At(key), kindOf(cause), cause)
	switch e.Kind {
	case hbackup.KindNoSpace:
		e.WithHint("make room on the file system of %s, or raise the quota", s.path)
	case hbackup.KindDenied:
		e.WithHint("give the user with the id %d access to %s", os.Geteuid(), s.path)
	case hbackup.KindReadOnly:
		e.WithHint("the file system of %s is mounted for reading only", s.path)
	}
	return e
}

// missingRoot says that the location itself is not there.
func (s *Store) missingRoot() error {
	return hbackup.Errorf("open location", string(s.location), hbackup.KindNotFound, "the directory %s is not there", s.path).
		WithHint("mount its disk, or make the directory")
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errMissing)
}

// isNotHere reports errors that mean: no object can be under that name.
func isNotHere(err error) bool {
	var nd notDir
	return isMissing(err) || errors.As(err, &nd)
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, path, err)
}
