//go:build unix

package file

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"

	"hbackup/storage"
)

// Delete removes a file and the directories that are empty after it.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := s.check(ctx, "delete", key); err != nil {
		return err
	}
	dirs, name := split(key)
	return s.deleteIn(dirs, []string{name})[name]
}

// DeleteBatch removes files, with one sync for each directory.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.err("delete in", "", err)
	}
	var failures []storage.DeleteFailure
	var order []string
	names := map[string][]string{} // by directory
	for _, key := range keys {
		if err := s.check(ctx, "delete", key); err != nil {
			failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
			continue
		}
		dirs, name := split(key)
		folder := strings.Join(dirs, "/")
		if names[folder] == nil {
			order = append(order, folder)
		}
		names[folder] = append(names[folder], name)
	}
	for _, folder := range order {
		if err := ctx.Err(); err != nil {
			return nil, s.err("delete in", "", err)
		}
		var dirs []string
		if folder != "" {
			dirs = strings.Split(folder, "/")
		}
		for name, err := range s.deleteIn(dirs, names[folder]) {
			failures = append(failures, storage.DeleteFailure{Key: storage.Join(folder, name), Err: err})
		}
	}
	return failures, nil
}

// deleteIn removes files of one directory and gives the errors by name. A file
// counts as gone only when that is durable.
func (s *Store) deleteIn(dirs, names []string) map[string]error {
	failed := map[string]error{}
	fail := func(name string, err error) {
		failed[name] = s.err("delete", storage.Join(strings.Join(dirs, "/"), name), err)
	}
	failAll := func(err error) map[string]error {
		for _, name := range names {
			fail(name, err)
		}
		return failed
	}
	root, err := s.openRoot()
	if err != nil {
		return failAll(err)
	}
	defer root.Close()
	d, err := s.lookUp(root, dirs)
	if isNotHere(err) {
		return nil
	}
	if err != nil {
		return failAll(err)
	}
	defer d.Close()
	for _, name := range names {
		st, err := d.stat(name)
		if err == nil && isFile(st) {
			err = d.unlink(name)
		}
		if err != nil && !isMissing(err) {
			fail(name, err)
		}
	}
	if err := d.Sync(); err != nil {
		return failAll(err)
	}
	s.did("sync directory")
	s.prune(root, dirs)
	return failed
}

// prune removes directories that are empty, from the last one up. It is of no
// harm when one stays.
func (s *Store) prune(root dir, dirs []string) {
	for ; len(dirs) > 0; dirs = dirs[:len(dirs)-1] {
		parent, err := s.lookUp(root, dirs[:len(dirs)-1])
		if err != nil {
			return
		}
		s.durable.forget(dirs)
		err = unix.Unlinkat(int(parent.Fd()), dirs[len(dirs)-1], unix.AT_REMOVEDIR)
		parent.Close()
		if err != nil {
			return
		}
	}
}
