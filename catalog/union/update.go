package union

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// Cache is where unions are kept: a directory for each location.
type Cache struct {
	dir    string
	log    *slog.Logger
	bounds bounds
}

// bounds of a merge, so that its memory does not grow with what is merged.
type bounds struct {
	lists int   // that are merged at the same time
	bytes int64 // that these may take together
	runs  int   // that wait to be merged
}

var usual = bounds{lists: 256, bytes: 64 << 20, runs: 48}

const (
	perFile = 200 // bytes of a file in memory
	openers = 16  // manifests that are opened at the same time
)

// unusedFor is after how long the unions of a location that nobody asked about are
// forgotten.
const unusedFor = 90 * 24 * time.Hour

// Open gives the cache in a directory, which is made when something is kept.
func Open(dir string, log *slog.Logger) *Cache {
	c := &Cache{dir: dir, log: log, bounds: usual}
	c.forgetUnused(time.Now())
	return c
}

func (c *Cache) forgetUnused(now time.Time) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // there is none yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && now.Sub(info.ModTime()) > unusedFor {
			os.RemoveAll(filepath.Join(c.dir, e.Name())) // what is left goes the next time
		}
	}
}

// Of gives the union of a table's committed images in a location, of which id is
// the one in its marker. A union that is not up to date, or damaged, is made anew
// from the manifests that it lacks; one of them that cannot be read is an error, as
// a union without it would hide files. The caller closes it.
func (c *Cache) Of(ctx context.Context, s storage.Store, id string, t hbackup.TableName) (*Union, error) {
	refs, err := catalog.ImageRefs(ctx, s, t)
	if err != nil {
		return nil, err
	}
	location := filepath.Join(c.dir, id)
	path := filepath.Join(location, t.Namespace, t.Qualifier+".union")
	old, err := open(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.log.Info("a list of files is made anew", "file", path, "why", err)
	}
	if old != nil && old.of(t, refs) {
		now := time.Now()
		os.Chtimes(location, now, now) // a cache that looks unused is only made anew
		return old, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, hbackup.E("keep list of files", path, hbackup.KindOther, err)
	}
	removeLeftovers(filepath.Dir(path))
	m := &maker{ctx: ctx, store: s, table: t, images: imagesOf(refs), dir: filepath.Dir(path), bounds: c.bounds}
	u, err := m.update(refs, old, path)
	if old != nil {
		old.Close()
		if hbackup.IsKind(err, hbackup.KindCorrupt) && ctx.Err() == nil {
			// The old union may be what is damaged.
			c.log.Info("a list of files is made anew", "file", path, "why", err)
			u, err = m.update(refs, nil, path)
		}
	}
	return u, err
}

// removeLeftovers removes what a process has left that was killed long ago.
func removeLeftovers(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), newPrefix) && time.Since(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// newPrefix begins the name of a file that is being written; no table has such a name.
const newPrefix = ".new-"

// update makes the union of the images and puts it into its place.
func (m *maker) update(refs []catalog.ImageRef, old *Union, path string) (*Union, error) {
	defer m.clean()
	var sources []*source
	known := map[image]bool{}
	if old != nil && old.head.Table == m.table {
		for _, im := range old.head.Images {
			known[im] = true
		}
		sources = append(sources, newSource(old.blocks(0), renumbering(old.head.Images, m.images)))
	}
	var lists []list
	for n, ref := range refs {
		if !known[m.images[n]] {
			lists = append(lists, list{ref, n})
		}
	}
	for len(lists) > 0 {
		batch := m.batch(lists)
		lists = lists[len(batch):]
		if len(lists) == 0 && len(m.runs) == 0 {
			made, err := m.openAll(batch)
			if err != nil {
				return nil, err
			}
			sources = append(sources, made...)
			break
		}
		if err := m.run(batch); err != nil {
			return nil, err
		}
	}
	return m.make(append(sources, m.runSources()...), path)
}

// list is an image whose list is read, and its number in the result.
type list struct {
	catalog.ImageRef
	number int
}

// maker makes one union.
type maker struct {
	ctx    context.Context
	store  storage.Store
	table  hbackup.TableName
	images []image
	dir    string
	bounds bounds
	runs   []*Union // of parts of the images, with their final numbers
}

// batch gives the first of the lists, as many as are merged at the same time.
func (m *maker) batch(lists []list) []list {
	var bytes int64
	for i, l := range lists {
		// Packed, a file takes 20 to 60 bytes.
		bytes += min(2*l.Size, 8<<20) + min(l.Size/20, catalog.BlockFiles)*perFile
		if i > 0 && (i == m.bounds.lists || bytes > m.bounds.bytes) {
			return lists[:i]
		}
	}
	return lists
}

// run merges a batch into a union of its own.
func (m *maker) run(batch []list) error {
	sources, err := m.openAll(batch)
	if err != nil {
		return err
	}
	u, err := m.make(sources, "")
	if err != nil {
		return err
	}
	if m.runs = append(m.runs, u); len(m.runs) <= m.bounds.runs {
		return nil
	}
	// Each has a block in memory, so they are put together before they are many.
	if u, err = m.make(m.runSources(), ""); err != nil {
		return err
	}
	m.clean()
	m.runs = []*Union{u}
	return nil
}

func (m *maker) runSources() []*source {
	var sources []*source
	for _, u := range m.runs {
		sources = append(sources, newSource(u.blocks(0), nil))
	}
	return sources
}

func (m *maker) clean() {
	for _, u := range m.runs {
		u.Close()
	}
	m.runs = nil
}

// openAll opens the lists of a batch, several at the same time.
func (m *maker) openAll(batch []list) ([]*source, error) {
	sources := make([]*source, len(batch))
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	free := make(chan struct{}, openers)
	for i, l := range batch {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			r, err := catalog.OpenStored(m.ctx, m.store, m.table, l.ImageRef)
			if err != nil {
				errs[i] = err
				return
			}
			sources[i] = imageSource(r, l.number)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, s := range sources {
			if s != nil {
				s.stop()
			}
		}
		return nil, firstOf(errs)
	}
	return sources, nil
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// make merges sources into a file, which takes its place at the path; without one it
// has no name and is gone when it is closed.
func (m *maker) make(sources []*source, path string) (_ *Union, err error) {
	f, err := os.CreateTemp(m.dir, newPrefix)
	if err != nil {
		return nil, hbackup.E("keep list of files", m.dir, hbackup.KindOther, err)
	}
	defer func() {
		if err != nil || path == "" {
			os.Remove(f.Name())
		}
		if err != nil {
			f.Close()
		}
	}()
	w, err := newWriter(f, m.table, m.images)
	if err != nil {
		return nil, err
	}
	if err := merge(sources, w.add); err != nil {
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	if path != "" {
		if err := os.Rename(f.Name(), path); err != nil {
			return nil, err
		}
	}
	return &Union{file: f, head: w.head}, nil
}
