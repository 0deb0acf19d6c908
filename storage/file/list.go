//go:build unix

package file

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hbackup/storage"
)

// List walks the directories. Its memory is that of the names in the largest
// directory on the way.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		l := &listing{ctx: ctx, prefix: prefix, after: string(opts.After), left: opts.Limit, folders: opts.Folders, namesOnly: opts.NamesOnly, yield: yield}
		err := ctx.Err()
		if err == nil {
			err = s.list(l)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(storage.Object{}, s.err("list", storage.Key(prefix), err))
		}
	}
}

// errStop ends a walk that has given enough.
var errStop = errors.New("stop")

type listing struct {
	ctx    context.Context
	prefix string
	after  string
	left   int // objects still wanted; counted down, so 0 at the start means no limit

	folders, namesOnly bool // as in ListOptions
	yield              func(storage.Object, error) bool
}

// list starts at the deepest directory that the prefix names.
func (s *Store) list(l *listing) error {
	root, err := s.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	at := ""
	var dirs []string
	if i := strings.LastIndexByte(l.prefix, '/'); i >= 0 {
		if storage.Key(l.prefix[:i]).Validate() != nil {
			return nil // no key can be there
		}
		at = l.prefix[:i+1]
		dirs = strings.Split(l.prefix[:i], "/")
		if reserved(dirs[0]) {
			return nil
		}
	}
	d, err := s.lookUp(root, dirs)
	if isNotHere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return l.walk(d, at)
}

// walk lists the directory d, whose keys all start with at.
func (l *listing) walk(d dir, at string) error {
	paths, err := l.paths(d, at)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		name := path[len(at):]
		folder, isFolder := strings.CutSuffix(name, "/")
		switch {
		case isFolder && l.gives(path):
			err = l.done(storage.Object{Key: storage.Key(path)})
		case isFolder:
			err = l.into(d, folder, path)
		case l.namesOnly:
			err = l.done(storage.Object{Key: storage.Key(path), Size: -1})
		default:
			err = l.give(d, name, storage.Key(path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) into(d dir, folder, at string) error {
	sub, err := d.sub(folder)
	if isNotHere(err) {
		return nil // gone since, or a link by now
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	return l.walk(sub, at)
}

func (l *listing) give(d dir, name string, key storage.Key) error {
	st, err := d.stat(name)
	if isMissing(err) || err == nil && !isFile(st) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.done(storage.Object{Key: key, Size: st.Size, Modified: time.Unix(st.Mtim.Unix())})
}

// done gives an object or folder.
func (l *listing) done(o storage.Object) error {
	if !l.yield(o, nil) {
		return errStop
	}
	if l.left--; l.left == 0 {
		return errStop
	}
	return nil
}

// paths gives what in d the listing may need, with at before each name, sorted as
// keys are: a directory sorts as its name with the slash, because that is what the
// keys in it start with.
func (l *listing) paths(d dir, at string) ([]string, error) {
	var paths []string
	for {
		entries, err := d.ReadDir(1000)
		paths = slices.Grow(paths, len(entries))
		for _, e := range entries {
			name, slash := e.Name(), ""
			switch {
			case at == "" && reserved(name) || isSillyRename(name):
				continue
			case e.IsDir():
				slash = "/"
			case !e.Type().IsRegular():
				continue
			}
			path := at + name + slash
			if l.wants(path) && storage.Key(path[:len(at)+len(name)]).Validate() == nil {
				paths = append(paths, path)
			}
		}
		if err == io.EOF || errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// wants reports whether a key, or keys below a directory with its slash, can be
// part of the listing.
func (l *listing) wants(path string) bool {
	if !strings.HasSuffix(path, "/") {
		return strings.HasPrefix(path, l.prefix) && path > l.after
	}
	if l.gives(path) {
		return strings.HasPrefix(path, l.prefix) && path > l.after
	}
	inPrefix := strings.HasPrefix(path, l.prefix) || strings.HasPrefix(l.prefix, path)
	return inPrefix && (path > l.after || strings.HasPrefix(l.after, path))
}

// gives reports whether a folder, with its slash, is given and not walked.
func (l *listing) gives(folder string) bool { return l.folders && len(folder) > len(l.prefix) }

// isSillyRename reports names that NFS gives to files that were deleted while
// they are open.
func isSillyRename(name string) bool {
	digits, ok := strings.CutPrefix(name, ".nfs")
	return ok && len(digits) >= 16 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}
