//go:build unix

package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"hbackup/storage"
)

// Rights names the modes of directories.
func (s *Store) Rights() storage.Rights {
	return storage.Rights{List: "read (r)", Get: "read (r)", Put: "write (w)", Delete: "write (w)"}
}

// littleRoom is the share of a file system, in per cent, below which it counts as
// nearly full.
const littleRoom = 5

// Inspect looks at the directory and its file system.
func (s *Store) Inspect(ctx context.Context, prefix string, terms storage.Terms) []storage.Finding {
	root, err := s.openRoot()
	if err != nil {
		return []storage.Finding{{Name: "directory", Verdict: storage.Harmful, Detail: err.Error(), Err: s.err("look into", "", err)}}
	}
	defer root.Close()
	all := append(s.inspectRoom(root), s.inspectMode(root)...)
	if terms.Writable {
		all = append(all, s.inspectLinks(root), s.inspectSync(root))
	}
	return all
}

// inspectRoom asks how much is free, and what kind of file system it is.
func (s *Store) inspectRoom(root dir) []storage.Finding {
	var fs unix.Statfs_t
	if _, err := again(func() (int, error) { return 0, unix.Fstatfs(int(root.Fd()), &fs) }); err != nil {
		return []storage.Finding{{Name: "free space", Verdict: storage.Caution, Detail: "it cannot be told: " + err.Error(), Hint: "see df " + s.path}}
	}
	room := storage.Finding{Name: "free space", Verdict: storage.Fine}
	free, all := uint64(fs.Bavail)*uint64(fs.Bsize), uint64(fs.Blocks)*uint64(fs.Bsize)
	switch {
	case all == 0:
		room.Detail = "the file system does not tell"
	case free == 0:
		room.Verdict, room.Detail, room.Hint = storage.Harmful, "none", "make room on the file system of "+s.path
	default:
		room.Detail = fmt.Sprintf("%s of %s", gib(free), gib(all))
		if free < all/100*littleRoom {
			room.Verdict, room.Hint = storage.Caution, "make room before the backups need it"
		}
	}
	if fs.Files > 0 && uint64(fs.Ffree) < uint64(fs.Files)/100*littleRoom {
		room.Verdict, room.Hint = storage.Caution, fmt.Sprintf("only %d more files can be made (inodes)", fs.Ffree)
	}
	if !inMemory(fs) {
		return []storage.Finding{room}
	}
	return []storage.Finding{room, {Name: "file system", Verdict: storage.Caution, Detail: "it is kept in memory (tmpfs): what is in it is gone after a restart", Hint: "take a disk"}}
}

// gib writes a size.
func gib(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// inspectMode tells who else can read the backups.
func (s *Store) inspectMode(root dir) []storage.Finding {
	info, err := root.Stat()
	if err != nil {
		return nil
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return []storage.Finding{{Name: "mode", Verdict: storage.Caution, Detail: fmt.Sprintf("others than the owner may use the directory (%04o); the files in it are for the owner alone", info.Mode().Perm()),
			Hint: "chmod 0700 " + s.path}}
	}
	return []storage.Finding{{Name: "mode", Verdict: storage.Fine, Detail: fmt.Sprintf("for the owner alone (%04o)", info.Mode().Perm())}}
}

// inspectLinks publishes a file in both ways, and a second one under the same name.
func (s *Store) inspectLinks(root dir) storage.Finding {
	f := storage.Finding{Name: "hard links", Verdict: storage.Harmful, Hint: "hbackup publishes files by hard links; take a file system that makes them"}
	in, err := s.openTempDir(root)
	if err != nil {
		f.Detail, f.Err = err.Error(), s.err("look into", "", err)
		return f
	}
	defer in.Close()
	name := tempName()
	defer in.unlink(name)
	for try := range 2 {
		t, err := s.newTemp(root)
		if err == nil {
			err = t.link(in, name)
			t.discard()
		}
		switch {
		case try == 0 && err != nil:
			f.Detail, f.Err = err.Error(), s.err("make a hard link in", "", err)
			return f
		case try == 1 && !errors.Is(err, unix.EEXIST):
			f.Detail = fmt.Sprintf("a second one under the same name is not refused (%v)", err)
			return f
		}
	}
	return storage.Finding{Name: f.Name, Verdict: storage.Fine, Detail: "a name that is taken is refused"}
}

// inspectSync makes a file and a directory durable.
func (s *Store) inspectSync(root dir) storage.Finding {
	t, err := s.newTemp(root)
	if err == nil {
		_, err = t.WriteString(strings.Repeat("x", 4096))
		err = errors.Join(err, t.Sync(), root.Sync())
		t.discard()
	}
	if err != nil {
		return storage.Finding{Name: "fsync", Verdict: storage.Harmful, Detail: err.Error(), Err: s.err("sync", "", err),
			Hint: "what is written could be lost in a crash; take a file system that can be synced"}
	}
	return storage.Finding{Name: "fsync", Verdict: storage.Fine, Detail: "of files and of directories"}
}

// Sweep has nothing to do: what was not published is gone.
func (s *Store) Sweep(context.Context, string) error { return nil }
