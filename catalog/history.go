package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/lease"
)

// Place is one location that holds, or may hold, backups of a cluster.
type Place struct {
	Name  string        // the location's name in the configuration
	Store storage.Store // the cluster's folder in the location
	// LocationID is the id in the location's marker, when it was read.
	LocationID string
	// Known remembers records of the location; nil when nothing does.
	Known Records
}

// Records remember what was read of a location. Records of runs and jobs never
// change once they are made, so one that a listing shows need not be read again.
type Records interface {
	// Get gives the record under the key if it is known and has that size; nil else.
	Get(key storage.Key, size int64) []byte
	// Put remembers a record.
	Put(key storage.Key, record []byte)
	// Retain forgets what is under the prefix and not among the keys, which are
	// ascending and all that there are.
	Retain(prefix string, keys []storage.Key)
}

// record reads a record that a listing has shown.
func (p Place) record(ctx context.Context, o storage.Object, v any, format *int, newest int) error {
	path := p.Store.Location().At(o.Key)
	if p.Known != nil {
		if b := p.Known.Get(o.Key, o.Size); b != nil && decodeRecord(path, b, v, format, newest) == nil {
			return nil
		}
	}
	b, err := readRecord(ctx, p.Store, o.Key)
	if err != nil {
		return err
	}
	if err := decodeRecord(path, b, v, format, newest); err != nil {
		return err
	}
	if p.Known != nil && int64(len(b)) == o.Size {
		p.Known.Put(o.Key, b)
	}
	return nil
}

// retain lets go of what a listing that was read to its end has not shown.
func (p Place) retain(prefix string, keys []storage.Key) {
	if p.Known != nil {
		p.Known.Retain(prefix, keys)
	}
}

// Entry is one run in the history of a cluster.
type Entry struct {
	Run
	Place string // name of the location
	// Unreadable says why the record could not be read; then only the id is known.
	Unreadable error
}

// History is what the locations of a cluster hold, read from storage alone.
type History struct {
	Entries []Entry // ascending by id, so by time
	// Unreachable names the locations that could not be listed and why: what
	// they hold is missing above.
	Unreachable map[string]error
}

// ReadHistory reads the runs of a cluster from all of its locations. A location
// that fails is said in the result and does not hide the others.
func ReadHistory(ctx context.Context, places []Place) History {
	h := History{Unreachable: map[string]error{}}
	for _, p := range places {
		entries, err := readPlace(ctx, p)
		if err != nil {
			h.Unreachable[p.Name] = err
		}
		h.Entries = append(h.Entries, entries...)
	}
	slices.SortFunc(h.Entries, func(a, b Entry) int {
		if c := strings.Compare(string(a.ID), string(b.ID)); c != 0 {
			return c
		}
		return strings.Compare(a.Place, b.Place)
	})
	return h
}

func readPlace(ctx context.Context, p Place) ([]Entry, error) {
	var entries []Entry
	var listed []storage.Key
	committed := map[hbackup.BackupID]bool{}
	for o, err := range p.Store.List(ctx, backupsPrefix, storage.ListOptions{}) {
		if err != nil {
			return entries, hbackup.E("list backups in", string(p.Store.Location()), hbackup.KindOther, err)
		}
		id, err := parseBackupKey(o.Key)
		if err != nil {
			continue // not ours; check reports unknown keys
		}
		committed[id] = true
		listed = append(listed, o.Key)
		r, err := p.run(ctx, id, o)
		if err != nil {
			r = Run{ID: id, State: StateFailed}
		}
		entries = append(entries, Entry{Run: r, Place: p.Name, Unreadable: err})
	}
	p.retain(backupsPrefix, listed)
	jobs, err := readJobs(ctx, p)
	for _, j := range jobs {
		if j.Verb != "backup" || committed[j.Backup] {
			continue
		}
		e, err := openEntry(ctx, p, j)
		if err != nil && !isDamage(err) {
			return entries, err
		}
		e.Unreadable = err
		entries = append(entries, e)
	}
	return entries, err
}

// run reads the record of a run that a listing has shown.
func (p Place) run(ctx context.Context, id hbackup.BackupID, o storage.Object) (Run, error) {
	var r Run
	if err := p.record(ctx, o, &r, &r.Format, RunFormat); err != nil {
		return r, err
	}
	return r, r.mustBe(id, p.Store)
}

// isDamage reports whether the error is about one object and says nothing of the
// next.
func isDamage(err error) bool {
	return hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete, hbackup.KindUnsupported)
}

// openEntry describes a run that had no record when the records were listed:
// running while its lease is live, failed otherwise, unless it was committed since.
func openEntry(ctx context.Context, p Place, j Job) (Entry, error) {
	e := Entry{Place: p.Name, Run: Run{Format: j.Format, ID: j.Backup, Request: j.Request, Cluster: j.Cluster, State: StateFailed, Started: j.Created, Host: j.Host, Writer: j.Writer}}
	for _, t := range j.Tables {
		e.Tables = append(e.Tables, TableRun{Table: t})
	}
	live, err := Live(ctx, p.Store, j.Backup)
	if err != nil {
		return e, err
	}
	if live {
		e.State = StateRunning
		return e, nil
	}
	r, err := ReadRun(ctx, p.Store, j.Backup)
	switch {
	case err == nil:
		e.Run = r
	case !hbackup.IsKind(err, hbackup.KindNotFound):
		return e, err
	}
	return e, nil
}

// AddImages fills in the images that a run without a record has committed: they
// are good without it. One whose manifest cannot be read is named all the same.
func AddImages(ctx context.Context, s storage.Store, r *Run) error {
	for i := range r.Tables {
		t, id := &r.Tables[i], r.ID.Image(i)
		im, err := ReadImage(ctx, s, t.Table, id)
		switch {
		case err == nil:
			*t = TableRun{Table: t.Table, Image: id, SnapshotStarted: im.SnapshotStarted, SnapshotFinished: im.SnapshotFinished, Totals: im.Totals, References: im.References, Caveat: im.Caveat}
		case isDamage(err):
			t.Image = id
		case !hbackup.IsKind(err, hbackup.KindNotFound):
			return err
		}
	}
	return nil
}

// RunLease names the lease that a run holds while it works.
func RunLease(id hbackup.BackupID) string { return "run-" + string(id) }

// Live reports whether the run's lease is held right now.
func Live(ctx context.Context, s storage.Store, id hbackup.BackupID) (bool, error) {
	h, found, err := lease.Read(ctx, s, RunLease(id))
	if err != nil || !found {
		return false, err
	}
	now, err := s.ServerTime(ctx)
	if err != nil {
		return false, err
	}
	return h.HeldAt(now), nil
}

// Dead reports whether the run is known here and its lease is no longer held.
func Dead(ctx context.Context, s storage.Store, id hbackup.BackupID) (bool, error) {
	_, found, err := lease.Read(ctx, s, RunLease(id))
	if err != nil || !found {
		return false, err
	}
	live, err := Live(ctx, s, id)
	return err == nil && !live, err
}

// readJobs reads the records of all requests. One that is damaged does not keep
// the others from being read; the error is for the first such.
func readJobs(ctx context.Context, p Place) (jobs []Job, damage error) {
	var listed []storage.Key
	for o, err := range p.Store.List(ctx, jobsPrefix, storage.ListOptions{}) {
		if err != nil {
			return jobs, hbackup.E("list jobs in", string(p.Store.Location()), hbackup.KindOther, err)
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(string(o.Key), jobsPrefix), "/job.json")
		if !ok || hbackup.RequestID(name).Validate() != nil {
			continue
		}
		listed = append(listed, o.Key)
		var j Job
		err := p.record(ctx, o, &j, &j.Format, RunFormat)
		switch {
		case err == nil:
			jobs = append(jobs, j)
		case !isDamage(err):
			return jobs, err
		case damage == nil:
			damage = err
		}
	}
	p.retain(jobsPrefix, listed)
	return jobs, damage
}

// Found is an image and the place that holds it.
type Found struct {
	Place Place
	Table hbackup.TableName
	ID    hbackup.ImageID
}

// ImagesOf gives the images of one run, table by table, whether or not the run
// has reached its end.
func ImagesOf(ctx context.Context, p Place, id hbackup.BackupID) ([]Found, error) {
	var out []Found
	for o, err := range p.Store.List(ctx, imagesPrefix, storage.ListOptions{}) {
		if err != nil {
			return out, hbackup.E("list images in", string(p.Store.Location()), hbackup.KindOther, err)
		}
		t, image, err := parseImageKey(o.Key)
		if err != nil {
			continue
		}
		if b, _ := image.Backup(); b == id {
			out = append(out, Found{Place: p, Table: t, ID: image})
		}
	}
	return out, nil
}

// Age is the time since the entry's data was taken: the earliest moment that any
// of its images may hold.
func (e *Entry) Age(now time.Time) time.Duration { return now.Sub(e.Started) }
