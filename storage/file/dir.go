//go:build unix

package file

import (
	"errors"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"hbackup"
)

// dir is an open directory. All work is done relative to one, name by name and
// without following symbolic links, so nothing outside the location is reached.
type dir struct{ *os.File }

func (s *Store) openRoot() (dir, error) {
	f, err := os.OpenFile(s.path, unix.O_DIRECTORY|os.O_RDONLY, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return dir{}, s.missingRoot()
	case errors.Is(err, syscall.ENOTDIR):
		return dir{}, notDir{s.path}
	}
	return dir{f}, err
}

// makeRoot opens the location's directory and makes it if need be.
func (s *Store) makeRoot() (dir, error) {
	root, err := s.openRoot()
	if !hbackup.IsKind(err, hbackup.KindNotFound) {
		return root, err
	}
	parent, err := os.OpenFile(path.Dir(s.path), unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return dir{}, s.missingRoot()
		}
		return dir{}, err
	}
	defer parent.Close()
	if err := os.Mkdir(s.path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return dir{}, err
	}
	if err := parent.Sync(); err != nil {
		return dir{}, err
	}
	return s.openRoot()
}

// sub opens a directory in d.
func (d dir) sub(name string) (dir, error) {
	full := d.Name() + "/" + name
	fd, err := again(func() (int, error) {
		return unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return dir{}, notDir{full}
	case err != nil:
		return dir{}, pathError("open", full, err)
	}
	return dir{os.NewFile(uintptr(fd), full)}, nil
}

// lookUp opens the directory of a key. Root stays open.
func (s *Store) lookUp(root dir, dirs []string) (dir, error) {
	return s.walk(root, dirs, dir.sub)
}

// makeDirs is lookUp that makes what is missing, each directory durable before
// the next.
func (s *Store) makeDirs(root dir, dirs []string) (dir, error) {
	rel := ""
	return s.walk(root, dirs, func(d dir, name string) (dir, error) {
		rel += "/" + name
		next, err := d.sub(name)
		made := isMissing(err)
		if made {
			_, err = again(func() (int, error) { return 0, unix.Mkdirat(int(d.Fd()), name, 0o700) })
			if err != nil && !errors.Is(err, unix.EEXIST) {
				return dir{}, pathError("make directory", d.Name()+"/"+name, err)
			}
			next, err = d.sub(name)
		}
		if err != nil {
			return dir{}, err
		}
		// Somebody else may have made it and not made it durable yet.
		if made || !s.durable.has(rel, next) {
			if err := d.Sync(); err != nil {
				next.Close()
				return dir{}, err
			}
			s.did("sync directory of " + rel)
			s.durable.add(rel, next)
		}
		return next, nil
	})
}

// walk goes down from root by step and gives the last directory, which is never
// root itself but can be a second handle on it.
func (s *Store) walk(root dir, dirs []string, step func(dir, string) (dir, error)) (dir, error) {
	d, err := root.sub(".")
	for _, name := range dirs {
		if err != nil {
			return dir{}, err
		}
		var next dir
		next, err = step(d, name)
		d.Close()
		d = next
	}
	return d, err
}

// stat describes a name in d without following it.
func (d dir) stat(name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	_, err := again(func() (int, error) { return 0, unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, pathError("stat", d.Name()+"/"+name, err)
}

func (d dir) unlink(name string) error {
	_, err := again(func() (int, error) { return 0, unix.Unlinkat(int(d.Fd()), name, 0) })
	return pathError("unlink", d.Name()+"/"+name, err)
}

func isFile(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }

func isDir(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// again repeats a call that a signal interrupted, as network file systems do.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// durable remembers which directories this store has seen to be durable in
// their parents, by path and inode.
type durable struct {
	mu   sync.Mutex
	seen map[string]uint64
}

// maxDurable bounds the memory; forgetting costs a sync.
const maxDurable = 50_000

func (m *durable) has(rel string, d dir) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, ok := m.seen[rel]
	return ok && ino == d.inode()
}

func (m *durable) add(rel string, d dir) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= maxDurable {
		m.seen = map[string]uint64{}
	}
	m.seen[rel] = d.inode()
}

func (m *durable) forget(dirs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, "/"+strings.Join(dirs, "/"))
}

// inode gives 0 when it cannot be told, which is no inode's number.
func (d dir) inode() uint64 {
	var st unix.Stat_t
	if unix.Fstat(int(d.Fd()), &st) != nil {
		return 0
	}
	return st.Ino
}
