package hdfs

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"hbackup/internal/files"
	"hbackup/storage"
)

// List walks the directories. Its memory is that of the largest directory on the
// way and of those above it.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		l := &listing{s: s, ctx: ctx, prefix: prefix, after: string(opts.After), left: opts.Limit, yield: yield}
		if err := l.run(); err != nil && !errors.Is(err, errStop) {
			yield(storage.Object{}, s.err("list", storage.Key(prefix), err))
		}
	}
}

// errStop ends a walk that has given enough.
var errStop = errors.New("stop")

type listing struct {
	s      *Store
	ctx    context.Context
	prefix string
	after  string
	left   int // objects still wanted; counted down, so 0 at the start means no limit
	yield  func(storage.Object, error) bool
}

// run starts at the deepest directory that the prefix names.
func (l *listing) run() error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	i := strings.LastIndexByte(l.prefix, '/')
	if i < 0 {
		return l.walk("")
	}
	dir := l.prefix[:i]
	if storage.Key(dir).Validate() != nil || reserved(dir) != "" {
		return nil // no key can be there
	}
	return l.walk(dir)
}

// entry is a file or directory, under the name by which it sorts: a directory
// with the slash, because that is what the keys in it go on with.
type entry struct {
	name string
	info files.Info
}

// walk lists a directory of the location.
func (l *listing) walk(dir string) error {
	entries, err := l.entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		key := storage.Join(dir, e.info.Name)
		if e.info.Dir {
			err = l.walk(string(key))
		} else {
			err = l.give(object(key, e.info))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) give(obj storage.Object) error {
	if !l.yield(obj, nil) {
		return errStop
	}
	if l.left--; l.left == 0 {
		return errStop
	}
	return nil
}

// entries gives what the listing may need of a directory, in the order of keys.
func (l *listing) entries(dir string) ([]entry, error) {
	infos, err := l.s.fs.ReadDir(l.ctx, l.s.at(dir))
	if isNotHere(err) {
		return nil, nil // gone since, or a file by now
	}
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(infos))
	for _, info := range infos {
		key := storage.Join(dir, info.Name)
		if key.Validate() != nil || reserved(string(key)) != "" {
			continue
		}
		path, name := string(key), info.Name
		if info.Dir {
			path, name = path+"/", name+"/"
		}
		if l.wants(path) {
			entries = append(entries, entry{name, info})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// wants reports whether a key, or keys below a directory with its slash, can be
// part of the listing.
func (l *listing) wants(path string) bool {
	if !strings.HasSuffix(path, "/") {
		return strings.HasPrefix(path, l.prefix) && path > l.after
	}
	inPrefix := strings.HasPrefix(path, l.prefix) || strings.HasPrefix(l.prefix, path)
	return inPrefix && (path > l.after || strings.HasPrefix(l.after, path))
}
