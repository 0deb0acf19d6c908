// Package verify reads back what an image names and compares every size and
// digest, and holds HBase's own manifest against the image: a file that the
// snapshot needs must be in it, and its regions must be such that a restore would
// not refuse them. It goes on after a fault: an operator wants to know all that is
// wrong.
package verify

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"hbackup"
	"hbackup/catalog"
	"hbackup/engine"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// Fault is one thing that is not as a committed manifest says.
type Fault struct {
	Image hbackup.ImageID   `json:"image"`
	Table hbackup.TableName `json:"table"`
	Path  string            `json:"path"` // fully qualified name of the object
	Kind  hbackup.Kind      `json:"kind"` // incomplete: missing; corrupt: other bytes; unsupported: whole, but a restore would refuse it; anything else: could not be read
	What  string            `json:"what"`
}

// Damage reports whether the fault is proof of damage, not only of a store that
// could not be asked.
func (f Fault) Damage() bool {
	return f.Kind == hbackup.KindCorrupt || f.Kind == hbackup.KindIncomplete
}

// Report is what a verification found.
type Report struct {
	Images int     `json:"images"`
	Files  int     `json:"files"`  // objects looked at
	Bytes  int64   `json:"bytes"`  // read, or only counted when SizesOnly
	Faults []Fault `json:"faults"` // ordered by image and path
}

// Options tune a verification.
type Options struct {
	Concurrency int
	SizesOnly   bool // compare names and sizes by listing, read no store file
	// Expect and Done are told how the work goes on; nil is fine.
	Expect func(files int, bytes int64)
	Done   func(files int, bytes int64)
}

type verifier struct {
	store  storage.Store
	opts   Options
	mu     sync.Mutex
	report Report
}

// Images verifies images of one place. Files that several of them name are read
// once. The error is for a verification that could not be carried out; what it
// finds is in the report.
func Images(ctx context.Context, found []catalog.Found, opts Options) (Report, error) {
	if opts.Expect == nil {
		opts.Expect = func(int, int64) {}
	}
	if opts.Done == nil {
		opts.Done = func(int, int64) {}
	}
	if len(found) == 0 {
		return Report{}, nil
	}
	v := &verifier{store: found[0].Place.Store, opts: opts}
	seen := map[where]catalog.File{}
	for _, f := range found {
		v.report.Images++
		im, err := catalog.ReadImage(ctx, v.store, f.Table, f.ID)
		if err != nil {
			v.fault(f, catalog.ImageKey(f.Table, f.ID), missingIsDamage(err))
			continue
		}
		v.snapshot(ctx, f, im)
		stores, err := f.Stores(ctx, &im.Header)
		if err != nil {
			v.unreachable(f, im, stores, err)
		}
		var fresh []catalog.File
		for _, file := range im.Files {
			if stores.Of(&file) == nil {
				continue
			}
			at := where{file.Location, file.Key()}
			old, dup := seen[at]
			if dup && old.Size == file.Size && old.Digest == file.Digest {
				continue
			}
			if dup {
				v.faultIn(stores.Of(&file), f, file.Key(), hbackup.Errorf("compare", "", hbackup.KindCorrupt, "two images of this backup disagree about its size or digest"))
			}
			seen[at] = file
			fresh = append(fresh, file)
		}
		if opts.SizesOnly {
			err = v.sizes(ctx, f, stores, fresh)
		} else {
			err = v.contents(ctx, f, stores, fresh)
		}
		if err != nil {
			return v.done(), err
		}
	}
	return v.done(), context.Cause(ctx)
}

func (v *verifier) done() Report {
	slices.SortFunc(v.report.Faults, func(a, b Fault) int {
		if c := strings.Compare(string(a.Image), string(b.Image)); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return v.report
}

// where tells the same path in two locations apart.
type where struct {
	location string
	key      storage.Key
}

// fault reports what is in the images' own location.
func (v *verifier) fault(f catalog.Found, key storage.Key, err error) {
	v.faultIn(v.store, f, key, err)
}

func (v *verifier) faultIn(s storage.Store, f catalog.Found, key storage.Key, err error) {
	v.faultAt(f, s.Location().At(key), err)
}

func (v *verifier) faultAt(f catalog.Found, path string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Faults = append(v.report.Faults, Fault{Image: f.ID, Table: f.Table, Path: path, Kind: hbackup.KindOf(err), What: err.Error()})
}

// unreachable reports each location that holds files of the image and is not to be
// had: what it holds cannot be looked at.
func (v *verifier) unreachable(f catalog.Found, im *catalog.Image, stores catalog.Stores, err error) {
	for _, r := range im.References {
		if stores[r.Location] == nil {
			v.faultAt(f, string(r.Name), err)
		}
	}
}

// snapshot compares HBase's own snapshot files, which are small, and what they
// need with what the image has.
func (v *verifier) snapshot(ctx context.Context, f catalog.Found, im *catalog.Image) {
	whole := true
	for _, s := range im.Snapshot {
		key := catalog.SnapshotKey(im.ID, s.Name)
		v.looked(s.Size)
		if err := v.compare(ctx, v.store, key, s.Size, s.Digest); err != nil {
			v.fault(f, key, err)
			whole = false
		}
	}
	if !whole {
		return // what it needs cannot be told
	}
	if err := v.needs(ctx, f, im); err != nil {
		v.fault(f, catalog.SnapshotKey(im.ID, catalog.DataManifestFile), err)
	}
}

// needs reports every file that the snapshot needs and the image lacks, and fails
// when a restore would refuse the image for another reason.
func (v *verifier) needs(ctx context.Context, f catalog.Found, im *catalog.Image) error {
	m, err := catalog.ReadSnapshot(ctx, v.store, im)
	if err != nil {
		return err
	}
	lacks, err := im.Lacks(m)
	if err != nil {
		return err
	}
	for l := range lacks {
		v.fault(f, l.Key, l.Err)
	}
	if err := snapshot.Composable(m); err != nil {
		// No damage of the location: the source was like that.
		return hbackup.E("restore", string(im.ID), hbackup.KindUnsupported, err)
	}
	return nil
}

func (v *verifier) contents(ctx context.Context, f catalog.Found, stores catalog.Stores, files []catalog.File) error {
	var bytes int64
	for _, file := range files {
		bytes += file.Size
	}
	v.opts.Expect(len(files), bytes)
	return engine.Local(ctx, max(v.opts.Concurrency, 1), engine.Each(files), func(ctx context.Context, file catalog.File) error {
		err := v.compare(ctx, stores.Of(&file), file.Key(), file.Size, file.Digest)
		if cause := context.Cause(ctx); cause != nil {
			return cause // an interrupted read says nothing of the object
		}
		if err != nil {
			v.faultIn(stores.Of(&file), f, file.Key(), err)
		}
		v.looked(file.Size)
		v.opts.Done(1, file.Size)
		return nil
	})
}

// compare reads one object whole.
func (v *verifier) compare(ctx context.Context, s storage.Store, key storage.Key, size int64, digest storage.Digest) error {
	r, o, err := s.Get(ctx, key, storage.Range{})
	if err != nil {
		return missingIsDamage(err)
	}
	defer r.Close() // only read from
	if o.Size != size {
		return hbackup.Errorf("compare", "", hbackup.KindCorrupt, "it has %d bytes and should have %d", o.Size, size)
	}
	buf := make([]byte, 256<<10)
	_, err = io.CopyBuffer(discard{}, storage.VerifyReader(r, size, digest), buf)
	return err
}

// discard is io.Discard without its ReadFrom, which would use a small buffer of its own.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// sizes compares by listing: one pass over the folder of each table named.
func (v *verifier) sizes(ctx context.Context, f catalog.Found, stores catalog.Stores, files []catalog.File) error {
	type folder struct {
		location string
		table    hbackup.TableName
	}
	have := map[where]int64{}
	listed := map[folder]bool{}
	for i := range files {
		file := &files[i]
		if listed[folder{file.Location, file.Table}] {
			continue
		}
		listed[folder{file.Location, file.Table}] = true
		s := stores.Of(file)
		for o, err := range s.List(ctx, catalog.ArchivePrefix(file.Table), storage.ListOptions{}) {
			if err != nil {
				return hbackup.E("list files in", string(s.Location()), hbackup.KindOther, err)
			}
			have[where{file.Location, o.Key}] = o.Size
		}
	}
	for i := range files {
		file := &files[i]
		size, there := have[where{file.Location, file.Key()}]
		switch {
		case !there:
			v.faultIn(stores.Of(file), f, file.Key(), hbackup.Errorf("compare", "", hbackup.KindIncomplete, "it is missing"))
		case size != file.Size:
			v.faultIn(stores.Of(file), f, file.Key(), hbackup.Errorf("compare", "", hbackup.KindCorrupt, "it has %d bytes and should have %d", size, file.Size))
		}
		v.looked(file.Size)
	}
	return nil
}

func (v *verifier) looked(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Files++
	v.report.Bytes += size
}

// missingIsDamage turns "not found" into a fault: a committed manifest names it.
func missingIsDamage(err error) error {
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return hbackup.Errorf("compare", "", hbackup.KindIncomplete, "it is missing")
	}
	return err
}
