package backup

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
)

// JournalBounds say after how much a run puts on record which files it has copied:
// whatever comes first. What a killed run had not yet on record is proven again by
// the next try, which on stores without digests means that it is read.
type JournalBounds struct {
	Files int           // default 1,000
	Bytes int64         // default 1 GiB
	Time  time.Duration // default 10 s
}

func (b JournalBounds) withDefaults() JournalBounds {
	if b.Files <= 0 {
		b.Files = 1000
	}
	if b.Bytes <= 0 {
		b.Bytes = 1 << 30
	}
	if b.Time <= 0 {
		b.Time = 10 * time.Second
	}
	return b
}

// journal puts on record which files of an image are in the location, and knows what
// earlier tries of the run have put on record. It is no truth: a file counts only if
// it is listed with that size, and without a journal files are proven. So nothing of
// it fails the run.
type journal struct {
	store  storage.Store
	job    catalog.Job
	folder string
	try    string // random: each try has names of its own
	opts   *Options
	log    *slog.Logger
	said   map[storage.Key]catalog.CopiedFile // by earlier tries

	mu      sync.Mutex
	batch   []catalog.CopiedFile
	bytes   int64     // of the batch
	from    time.Time // of the first in the batch
	written int       // records
}

// openJournal begins the journal of an image; nil with a committer that keeps its
// own record.
func (r *run) openJournal(ctx context.Context, id hbackup.ImageID) *journal {
	if r.choice.Protocol == committer.ProtocolDeferred {
		return nil
	}
	j := &journal{store: r.store, job: r.job, folder: catalog.CopiedFolder(r.req.ID, id), try: rand.Text(), opts: &r.opts, log: r.opts.Log}
	if r.again {
		j.read(ctx)
	}
	return j
}

// read learns what earlier tries have put on record. Of what was copied without a
// look at checksums nothing counts for a run that looks at them.
func (j *journal) read(ctx context.Context) {
	j.said = map[storage.Key]catalog.CopiedFile{}
	for o, err := range j.store.List(ctx, j.folder, storage.ListOptions{}) {
		if err != nil {
			j.log.Warn("what an earlier try of this run has copied cannot be read; its files are proven", "error", err)
			return
		}
		c, err := catalog.ReadCopied(ctx, j.store, o.Key, j.job)
		if err != nil {
			j.log.Warn("a record of what an earlier try of this run has copied cannot be read; its files are proven", "error", err)
			continue
		}
		if c.Unchecked && !j.opts.SkipChecksums {
			continue
		}
		for _, f := range c.Files {
			j.said[f.Key] = f
		}
	}
}

// knows gives what an earlier try has put on record of a file that is listed with
// the size that is needed.
func (j *journal) knows(n need) (f catalog.File, ok bool) {
	if j == nil || n.size < 0 {
		return f, false
	}
	c, ok := j.said[n.key()]
	if !ok || c.Size != n.size {
		return f, false
	}
	f = n.file()
	f.Digest, f.Cells = c.Digest, c.Cells
	return f, true
}

// passed takes note of a file that is in the location, whole and judged.
func (j *journal) passed(ctx context.Context, f catalog.File) {
	if j == nil {
		return
	}
	j.mu.Lock()
	if len(j.batch) == 0 {
		j.from = time.Now()
	}
	j.batch = append(j.batch, catalog.CopiedFile{Key: f.Key(), Size: f.Size, Digest: f.Digest, Cells: f.Cells})
	j.bytes += f.Size
	b := j.opts.Journal
	full := len(j.batch) >= b.Files || j.bytes >= b.Bytes || time.Since(j.from) >= b.Time
	j.mu.Unlock()
	if full {
		j.flush(ctx)
	}
}

// flush puts on record what is not yet.
func (j *journal) flush(ctx context.Context) {
	j.mu.Lock()
	batch := j.batch
	j.batch, j.bytes = nil, 0
	if len(batch) > 0 {
		j.written++
	}
	key := storage.Key(fmt.Sprintf("%s%s-%06d.json", j.folder, j.try, j.written))
	j.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	if err := catalog.WriteCopied(ctx, j.store, key, j.job, catalog.Copied{Files: batch, Unchecked: j.opts.SkipChecksums}); err != nil {
		j.log.Warn("what was copied is not on record; if this run is killed, the next try proves it again", "files", len(batch), "error", err)
	}
}

// close puts the rest on record when the work on the image was broken off: the same
// request may go on with it.
func (r *run) closeJournal(ctx context.Context, j *journal, failure error) {
	if j == nil {
		return
	}
	if failure != nil && r.lease.Check() == nil {
		fctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		j.flush(fctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.written > 0 {
		r.journaled.Store(true)
	}
}

// dropJournals deletes what is on record of copied files, when the run is about to be
// recorded. What is left does no harm.
func (r *run) dropJournals(ctx context.Context) {
	if !r.again && !r.journaled.Load() {
		return
	}
	var keys []storage.Key
	for o, err := range r.store.List(ctx, catalog.CopiedPrefix(r.req.ID), storage.ListOptions{}) {
		if err != nil {
			r.opts.Log.Debug("records of copied files are left", "error", err)
			return
		}
		keys = append(keys, o.Key)
	}
	if len(keys) == 0 {
		return
	}
	failures, err := r.store.DeleteBatch(ctx, keys)
	if err != nil || len(failures) > 0 {
		r.opts.Log.Debug("records of copied files are left", "failures", len(failures), "error", err)
	}
}
