package files

import (
	"path"
	"strings"

	"hbackup"
)

// CheckPath refuses paths that are not absolute and clean, so that two spellings
// never mean one file.
func CheckPath(op, uri, p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return hbackup.Errorf(op, uri, hbackup.KindUsage, "the path is not absolute")
	case path.Clean(p) != p:
		return hbackup.Errorf(op, uri, hbackup.KindUsage, "the path is not clean (should be %q)", path.Clean(p))
	case strings.ContainsRune(p, 0):
		return hbackup.Errorf(op, uri, hbackup.KindUsage, "the path holds a zero byte")
	}
	return nil
}

// CheckNotRoot refuses to remove or replace a whole file system.
func CheckNotRoot(op, uri, p string) error {
	if p == "/" {
		return hbackup.Errorf(op, uri, hbackup.KindRefused, "this is the root of the file system")
	}
	return nil
}

// CheckReadable refuses directories and offsets outside of the file.
func CheckReadable(op, uri string, info Info, offset int64) error {
	switch {
	case info.Dir:
		return hbackup.Errorf(op, uri, hbackup.KindConflict, "it is a directory")
	case offset < 0 || offset > info.Size:
		return hbackup.Errorf(op, uri, hbackup.KindUsage, "offset %d is outside the file (%d bytes)", offset, info.Size)
	}
	return nil
}

// NotADirectory is the error of a listing of something else.
func NotADirectory(op, uri string) error {
	return hbackup.Errorf(op, uri, hbackup.KindConflict, "it is not a directory")
}
