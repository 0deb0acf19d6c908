package file

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file without a name, which the kernel drops when its
// process dies. It gives errors.ErrUnsupported where that cannot be had.
func openUnnamed(root dir) (*os.File, error) {
	if !hasProc() {
		return nil, errors.ErrUnsupported
	}
	fd, err := again(func() (int, error) {
		return unix.Openat(int(root.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	})
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), root.Name()+"/(unnamed)"), nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS:
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return nil, pathError("create in", root.Name(), err)
}

// linkUnnamed gives a name to a file without one. The way over /proc needs no
// privilege.
func linkUnnamed(f *os.File, d dir, name string) error {
	_, err := again(func() (int, error) {
		return 0, unix.Linkat(unix.AT_FDCWD, fdPath(f), int(d.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	})
	return err
}

func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// hasProc reports whether files can be reached over /proc.
var hasProc = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// world names the set of process numbers that this process can see: a boot of a
// machine and a name space. "" means that it cannot be told.
var world = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	h := fnv.New64a()
	h.Write(boot)
	h.Write([]byte(space))
	return hex.EncodeToString(h.Sum(nil))
})

// reserve takes the room for a file before it is written, where that can be
// done, so that a full disk is noticed before the work and not after it.
func reserve(f *os.File, size int64) error {
	_, err := again(func() (int, error) { return 0, unix.Fallocate(int(f.Fd()), 0, 0, size) })
	switch err {
	case unix.ENOSPC, unix.EDQUOT:
		return pathError("reserve room for", f.Name(), err)
	}
	return nil
}
