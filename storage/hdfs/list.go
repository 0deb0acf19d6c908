package hdfs

import (
	"context"
	"errors"
	"iter"
	"strings"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// List walks the directories. Its memory is a page of each directory on the way,
// and the names beyond ASCII that are in it.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		l := &listing{s: s, ctx: ctx, prefix: prefix, after: string(opts.After), left: opts.Limit, folders: opts.Folders, yield: yield}
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
	left   int         // objects still wanted; counted down, so 0 at the start means no limit
	last   storage.Key // that was given

	folders bool // as ListOptions.Folders
	yield   func(storage.Object, error) bool
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

// walk lists a directory of the location, page by page. What the name node gives
// too early is held until its turn; see held.
func (l *listing) walk(dir string) error {
	var h held
	for after := ""; ; {
		page, err := l.s.fs.ReadDirPage(l.ctx, l.s.at(dir), after)
		if isNotHere(err) {
			break // gone since, or a file by now
		}
		if err != nil {
			return err
		}
		for _, info := range page {
			if err := h.before(info.Name, l.visit); err != nil {
				return err
			}
			if e, wanted := l.entry(dir, info); wanted {
				h.hold(e)
			}
		}
		if len(page) < files.PageSize {
			break
		}
		after = page[len(page)-1].Name
	}
	return h.rest(l.visit)
}

// entry gives a file or directory if the listing may need it.
func (l *listing) entry(dir string, info files.Info) (entry, bool) {
	key := storage.Join(dir, info.Name)
	if key.Validate() != nil || reserved(string(key)) != "" {
		return entry{}, false
	}
	e := entry{name: info.Name, key: key, info: info}
	path := string(key)
	if info.Dir {
		e.name, path = e.name+"/", path+"/"
	}
	return e, l.wants(path)
}

// visit gives a file, or walks a directory.
func (l *listing) visit(e entry) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	given := object(e.key, e.info)
	if e.info.Dir {
		folder := e.key + "/"
		if !l.folders || len(folder) <= len(l.prefix) {
			return l.walk(string(e.key))
		}
		given = storage.Object{Key: folder}
	}
	if given.Key <= l.last {
		return hbackup.Errorf("list", e.info.Path, hbackup.KindCorrupt, "the name node gave it out of order, behind %s", l.last)
	}
	l.last = given.Key
	if !l.yield(given, nil) {
		return errStop
	}
	if l.left--; l.left == 0 {
		return errStop
	}
	return nil
}

// wants reports whether a key, or keys below a directory with its slash, can be
// part of the listing.
func (l *listing) wants(path string) bool {
	if !strings.HasSuffix(path, "/") {
		return strings.HasPrefix(path, l.prefix) && path > l.after
	}
	if l.folders && len(path) > len(l.prefix) {
		return strings.HasPrefix(path, l.prefix) && path > l.after // it is given and not walked
	}
	inPrefix := strings.HasPrefix(path, l.prefix) || strings.HasPrefix(l.prefix, path)
	return inPrefix && (path > l.after || strings.HasPrefix(l.after, path))
}
