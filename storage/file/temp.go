//go:build unix

package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// temp is a file that is being written. It has no name, or one in tempDir.
type temp struct {
	*os.File
	in   dir    // where its name is
	name string // "" for a file without one
}

// newTemp makes a file on the file system of the location.
func (s *Store) newTemp(root dir) (*temp, error) {
	if !s.named {
		f, err := openUnnamed(root)
		if err == nil {
			return &temp{File: f}, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
	}
	in, err := s.openTempDir(root)
	if err != nil {
		return nil, err
	}
	name := tempName()
	fd, err := again(func() (int, error) {
		return unix.Openat(int(in.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		in.Close()
		return nil, pathError("create", in.Name()+"/"+name, err)
	}
	return &temp{File: os.NewFile(uintptr(fd), in.Name()+"/"+name), in: in, name: name}, nil
}

// openTempDir opens tempDir, makes it if need be, and sweeps it once.
func (s *Store) openTempDir(root dir) (dir, error) {
	in, err := root.sub(tempDir)
	if isMissing(err) {
		if err := unix.Mkdirat(int(root.Fd()), tempDir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return dir{}, pathError("make directory", root.Name()+"/"+tempDir, err)
		}
		in, err = root.sub(tempDir)
	}
	if err == nil {
		s.sweep.Do(func() { sweepTemp(in) })
	}
	return in, err
}

// discard gives the file up, or what is left of it once it was published.
func (t *temp) discard() {
	t.File.Close()
	if t.in.File != nil {
		t.in.unlink(t.name) // what stays is swept later
		t.in.Close()
	}
}

// The calls that give names. On NFS their answers may be lost: the client asks once
// more and is told that the name is taken, or missing, by its own first try.
var linkat, renameat = unix.Linkat, unix.Renameat

// link publishes the file under a name in d. When the file has a name it tells
// a link of its own whose answer was lost from one of somebody else.
func (t *temp) link(d dir, name string) error {
	if t.name == "" {
		return pathError("link", d.Name()+"/"+name, linkUnnamed(t.File, d, name))
	}
	_, err := again(func() (int, error) {
		return 0, linkat(int(t.in.Fd()), t.name, int(d.Fd()), name, 0)
	})
	if err != nil && t.isAt(d, name) {
		return nil
	}
	return pathError("link", d.Name()+"/"+name, err)
}

// isAt reports whether a name in d is one of this file.
func (t *temp) isAt(d dir, name string) bool {
	var own unix.Stat_t
	there, err := d.stat(name)
	return err == nil && unix.Fstat(int(t.Fd()), &own) == nil && own.Dev == there.Dev && own.Ino == there.Ino
}

// abandonedAfter is the age at which a temporary file of another machine, or of
// one that cannot be told, counts as left behind. Should its writer live and be
// very slow, its link fails, and so does its Put.
const abandonedAfter = 48 * time.Hour

// tempName carries the process that writes, so that its death can be told.
func tempName() string {
	return fmt.Sprintf("%s~%d~%s", world(), os.Getpid(), rand.Text())
}

// sweepTemp removes what dead processes left in tempDir, as well as it can.
func sweepTemp(in dir) {
	now, err := clockOf(in)
	if err != nil {
		return
	}
	names, err := in.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		st, err := in.stat(name)
		if err != nil || !isFile(st) {
			continue
		}
		age := now.Sub(time.Unix(st.Mtim.Unix()))
		if age > abandonedAfter || writerIsDead(name) {
			in.unlink(name)
		}
	}
}

// writerIsDead reports whether the process in the name is surely gone: it ran
// in the same world of process numbers as this one and has no successor under
// its number.
func writerIsDead(name string) bool {
	parts := strings.Split(name, "~")
	if len(parts) != 3 || parts[0] == "" || parts[0] != world() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return false
	}
	return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// clockOf gives the time of the file system of d.
func clockOf(d dir) (time.Time, error) {
	name := tempName()
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	defer d.unlink(name)
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return time.Unix(st.Mtim.Unix()), err
}
