//go:build unix

// Package file is a store in a directory of a local or network file system.
//
// An object is a file. It is written without a name, or under a name of its own
// in the directory .hbackup-tmp, made durable, and then published under its key
// by a hard link, which the file system makes only if nothing is there. So a
// file that has a key is whole, of all who create one key exactly one wins, and
// a process that is killed leaves nothing behind that could be taken for an
// object. Directories are made durable before and after.
//
// Only a plain Put over an object that is there already goes another way, as a
// link cannot replace: the new file is linked under a name in .hbackup-tmp and
// renamed over the old one, which readers see as one step, too. Put with
// IfAbsent never renames.
//
// No file locks are used, so that it works on NFS as well, where a link whose
// answer was lost is told from one that somebody else made. The file system must
// have hard links.
//
// Symbolic links below the location are never followed; they and everything else
// that is neither file nor directory are not seen.
package file

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Names at the top of a location that are no keys.
const (
	tempDir   = ".hbackup-tmp"
	lostFound = "lost+found" // of ext file systems, when the location is a mount point
)

// Store is a directory.
type Store struct {
	location storage.Location
	path     string

	named bool         // write under temporary names even where unnamed files are possible
	trace func(string) // for tests: the steps that matter for durability, as they are done

	sweep   sync.Once // of what dead processes left in tempDir
	durable durable
}

var _ storage.Store = (*Store)(nil)

// Open gives the store in a directory. It does not look at the disk. The
// directory is made by the first Put; its parent must be there by then, so that
// a disk that is not mounted is noticed.
func Open(place storage.Place) (*Store, error) {
	if place.Scheme != storage.SchemeFile || !strings.HasPrefix(place.Path, "/") {
		return nil, hbackup.Errorf("open location", string(place.Location()), hbackup.KindUsage, "it is not a directory of this machine")
	}
	return &Store{location: place.Location(), path: place.Path}, nil
}

// Location gives file:///directory.
func (s *Store) Location() storage.Location { return s.location }

// Capabilities are the bare contract.
func (s *Store) Capabilities() storage.Capabilities {
	return storage.Capabilities{MaxKeyBytes: storage.MaxKeyBytes}
}

// ServerTime gives the clock of the file system, which is that of the server on
// a network file system: the time it gives to a new file. Where no file can be
// made no lease can be taken either; this machine's clock is good enough then.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, s.err("ask the time of", "", err)
	}
	root, err := s.openRoot()
	if err != nil {
		return time.Now(), nil
	}
	defer root.Close()
	t, err := s.newTemp(root)
	if err != nil {
		return time.Now(), nil
	}
	defer t.discard()
	// Some file systems set the time of the first write, not that of the creation.
	if _, err := t.Write([]byte{0}); err != nil {
		return time.Now(), nil
	}
	info, err := t.Stat()
	if err != nil {
		return time.Time{}, s.err("ask the time of", "", err)
	}
	return info.ModTime(), nil
}

// Close does nothing; no file is kept open.
func (s *Store) Close() error { return nil }

func (s *Store) did(step string) {
	if s.trace != nil {
		s.trace(step)
	}
}

// split gives the directories and the file name of a key.
func split(key storage.Key) (dirs []string, name string) {
	segments := strings.Split(string(key), "/")
	return segments[:len(segments)-1], segments[len(segments)-1]
}

// check is storage.Check and refuses the names that are no keys here.
func (s *Store) check(ctx context.Context, op string, key storage.Key) error {
	if err := storage.Check(ctx, op, s.location, key); err != nil {
		return err
	}
	if first, _, _ := strings.Cut(string(key), "/"); reserved(first) {
		return hbackup.Errorf(op, s.location.At(key), hbackup.KindUsage, "%q is a reserved name", first)
	}
	return nil
}

func reserved(top string) bool { return top == tempDir || top == lostFound }

// object describes a file.
func object(key storage.Key, info os.FileInfo) storage.Object {
	return storage.Object{Key: key, Size: info.Size(), Modified: info.ModTime()}
}
