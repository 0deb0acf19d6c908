package restore

import (
	"context"
	"errors"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"hbackup"
	"hbackup/engine"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/snapshot"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// attempts bounds how often a file is tried when the cluster or the store is
// unreachable for a moment.
const attempts = 4

const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// copied counts what a run has copied itself.
type copied struct {
	files atomic.Int64
	bytes atomic.Int64
}

// putFiles brings every file of the plan to its place.
func (r *run) putFiles(ctx context.Context, s *situation) error {
	err := engine.Local(ctx, r.opts.Files, engine.Each(s.plan.folders), func(ctx context.Context, f folder) error {
		for _, dir := range []string{f.dir, f.aside} {
			if dir == "" {
				continue
			}
			dir = path.Join(r.target.Root, dir)
			if err := r.target.FS.MkdirAll(ctx, dir); err != nil {
				return hbackup.E("make directory", r.target.FS.URI()+dir, hbackup.KindOther, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return engine.Local(ctx, r.opts.Files, s.plan.tasks, func(ctx context.Context, t task) error {
		return r.putFile(ctx, t, s.takeover)
	})
}

func (r *run) putFile(ctx context.Context, t task, mayBeThere bool) error {
	var err error
	for try := range attempts {
		if try > 0 {
			if werr := r.opts.wait(ctx, time.Duration(try)*time.Second); werr != nil {
				return werr
			}
			r.opts.Log.Warn("copying a file again", "file", t.from.Key(), "after", err)
		}
		var there bool
		if t.aside != "" {
			there, err = r.putShared(ctx, t, mayBeThere || try > 0)
		} else {
			there, err = r.putOnce(ctx, t, mayBeThere || try > 0)
		}
		if err == nil {
			if !there {
				r.copied.files.Add(1)
				r.copied.bytes.Add(t.from.Size)
			}
			r.opts.Reporter.Done(t.from.Size, 1)
			return nil
		}
		if !hbackup.Retryable(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// putOnce copies a file unless it is there, whole. What is there otherwise was
// left half-written by a killed run, or by an earlier try, and is replaced.
func (r *run) putOnce(ctx context.Context, t task, mayBeThere bool) (there bool, err error) {
	at := path.Join(r.target.Root, t.dir, t.name)
	if mayBeThere {
		if there, _, err := r.sameAs(ctx, t, at); there || err != nil {
			return there, err
		}
		if err := r.held(); err != nil {
			return false, err
		}
		if err := r.target.FS.Remove(ctx, at); err != nil {
			return false, hbackup.E("remove half-written file", r.target.FS.URI()+at, hbackup.KindOther, err)
		}
	}
	err = r.copyFile(ctx, t, at)
	if !hbackup.IsKind(err, hbackup.KindExists) {
		return false, err
	}
	// The answer to an earlier create was lost.
	if there, _, err := r.sameAs(ctx, t, at); there || err != nil {
		return there, err
	}
	return false, hbackup.E("stage file", r.target.FS.URI()+at, hbackup.KindUnavailable, err)
}

// sameAs compares a file on the cluster with the image's size and digest; other
// says that something else is there, or something that cannot be read.
func (r *run) sameAs(ctx context.Context, t task, at string) (same, other bool, err error) {
	body, info, err := r.target.FS.Open(ctx, at, 0)
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return false, false, nil
	case isUnreadable(err):
		return false, true, nil
	case err != nil:
		return false, false, hbackup.E("look for staged file", r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	defer body.Close() // only read from
	if info.Size != t.from.Size {
		return false, true, nil
	}
	_, err = pour(io.Discard, storage.VerifyReader(body, t.from.Size, t.from.Digest))
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound): // gone, or moved by HBase
		return false, false, nil
	case isUnreadable(err):
		return false, true, nil
	case err != nil:
		return false, false, hbackup.E("read staged file", r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	return true, false, nil
}

// isUnreadable reports whether a staged file is better written again: every error
// but those of a file system that does not answer or does not let us.
func isUnreadable(err error) bool {
	return err != nil && !hbackup.Retryable(err) && !hbackup.IsKind(err, hbackup.KindInterrupted, hbackup.KindDenied)
}

// copyFile streams one file from the location to the cluster. Size and digest
// are checked before the file is closed, and an unclosed file is removed.
func (r *run) copyFile(ctx context.Context, t task, at string) (err error) {
	key := t.from.Key()
	store := r.stores.Of(t.from)
	path := store.Location().At(key)
	body, obj, err := store.Get(ctx, key, storage.Range{})
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return hbackup.E("read file of image", path, hbackup.KindIncomplete, err).
			WithHint("it was there when the restore began: somebody deletes from the location; hbackup verify shows what is missing")
	}
	if err != nil {
		return hbackup.E("read file of image", path, hbackup.KindOther, err)
	}
	defer body.Close() // only read from; VerifyReader has seen the end
	if obj.Size != t.from.Size {
		return hbackup.Errorf("read file of image", path, hbackup.KindCorrupt, "it has %d bytes, the image says %d", obj.Size, t.from.Size).
			WithHint("hbackup verify shows what else is damaged")
	}
	w, err := r.create(ctx, at)
	if err != nil {
		return hbackup.E("stage file", r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	failpoint.Hit(StepFileOpened)
	source := &watched{r: storage.VerifyReader(body, t.from.Size, t.from.Digest)}
	if _, err := pour(w, source); err != nil {
		aerr := w.Abort()
		if source.err != nil {
			e := hbackup.E("read file of image", path, hbackup.KindOther, source.err)
			if hbackup.IsKind(e, hbackup.KindCorrupt) {
				e = e.WithHint("hbackup verify shows what else is damaged")
			}
			return errors.Join(e, aerr)
		}
		return errors.Join(hbackup.E("write staged file", r.target.FS.URI()+at, hbackup.KindOther, err), aerr)
	}
	if err := w.Close(); err != nil {
		return hbackup.E("write staged file", r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	failpoint.Hit(StepFileCopied)
	return nil
}

// create begins a file, and makes its directory anew when that is gone: HBase's
// cleaners remove directories of the archive that are empty.
func (r *run) create(ctx context.Context, at string) (w rootfs.Writer, err error) {
	for range attempts {
		w, err = r.target.FS.Create(ctx, at)
		if !hbackup.IsKind(err, hbackup.KindNotFound) {
			return w, err
		}
		if err := r.target.FS.MkdirAll(ctx, path.Dir(at)); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// watched remembers how its source failed, to tell that from a failing writer.
type watched struct {
	r   io.Reader
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// pour copies with a buffer of ours, whatever shortcuts reader and writer offer.
func pour(w io.Writer, r io.Reader) (int64, error) {
	b := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, b[:])
}

// fault is a staged file that is not as it must be.
type fault struct {
	path string // relative to the root
	size int64  // -1: missing
	want int64
}

// listFaults lists the staging folders and gives the files that are not there
// with their size.
func (r *run) listFaults(ctx context.Context, p *plan) ([]fault, error) {
	var mu sync.Mutex
	var out []fault
	err := engine.Local(ctx, r.opts.Files, engine.Each(p.folders), func(ctx context.Context, f folder) error {
		entries, err := r.readDir(ctx, path.Join(r.target.Root, f.dir))
		if err != nil {
			return err
		}
		sizes := make(map[string]int64, len(entries))
		for _, e := range entries {
			if !e.Dir {
				sizes[e.Name] = e.Size
			}
		}
		for _, file := range f.files {
			size, ok := sizes[file.name]
			if !ok {
				size = -1
			}
			if size != file.from.Size && f.shared() {
				if size, err = r.mobSize(ctx, file); err != nil {
					return err
				}
			}
			if size != file.from.Size {
				mu.Lock()
				out = append(out, fault{path.Join(f.dir, file.name), size, file.from.Size})
				mu.Unlock()
			}
		}
		return nil
	})
	return out, err
}

// mobSize gives the size of a MOB file where its own table has it, -1 if nowhere.
// It may be moved to the archive meanwhile, so that is looked at once more.
func (r *run) mobSize(ctx context.Context, f file) (int64, error) {
	for _, at := range []string{snapshot.MOBPath(r.target.Root, f.target), snapshot.ArchivePath(r.target.Root, f.target)} {
		info, err := r.target.FS.Stat(ctx, at)
		switch {
		case err == nil:
			return info.Size, nil
		case !hbackup.IsKind(err, hbackup.KindNotFound):
			return -1, hbackup.E("look for MOB file", r.target.FS.URI()+at, hbackup.KindOther, err)
		}
	}
	return -1, nil
}

// verifyFiles makes sure, by listing, that everything the clone will read is
// there; HBase looks again before it begins.
func (r *run) verifyFiles(ctx context.Context, p *plan) error {
	faults, err := r.listFaults(ctx, p)
	if err != nil || len(faults) == 0 {
		return err
	}
	f := faults[0]
	what := "it is missing"
	if f.size >= 0 {
		what = "it has another size than was written"
	}
	return hbackup.Errorf("check staged file", r.target.FS.URI()+path.Join(r.target.Root, f.path), hbackup.KindIncomplete, "%s (%d of %d files are not right)", what, len(faults), p.files).
		WithHint("something deletes from the cluster's archive; run the restore again")
}
