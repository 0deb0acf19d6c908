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

// Entry is one run in the history of a cluster.
type Entry struct {
	Run
	Place string // name of the location
	// Holder is who works on a run that is running.
	Holder lease.Holder
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
	type answer struct {
		entries []Entry
		err     error
	}
	answers := make([]answer, len(places))
	parallel(len(places), len(places), func(i int) {
		answers[i].entries, answers[i].err = readPlace(ctx, places[i])
	})
	for i, a := range answers {
		if a.err != nil {
			h.Unreachable[places[i].Name] = a.err
		}
		if len(a.entries) > 0 && h.Entries == nil {
			h.Entries = a.entries
			continue
		}
		h.Entries = append(h.Entries, a.entries...)
	}
	inOrder := func(a, b Entry) int {
		if c := strings.Compare(string(a.ID), string(b.ID)); c != 0 {
			return c
		}
		return strings.Compare(a.Place, b.Place)
	}
	if !slices.IsSortedFunc(h.Entries, inOrder) {
		slices.SortFunc(h.Entries, inOrder)
	}
	return h
}

// readPlace reads the history of one location. Records of runs and of requests are
// listed at the same time: what one listing shows and the other does not is looked
// at once more, in openEntry.
func readPlace(ctx context.Context, p Place) ([]Entry, error) {
	var known Remembered
	var runs []listedRun
	var requests []hbackup.RequestID
	var runsErr, requestsErr error
	parallel(3, 3, func(i int) {
		switch i {
		case 0:
			runs, runsErr = listRuns(ctx, p)
		case 1:
			requests, requestsErr = listRequests(ctx, p)
		case 2:
			known = p.remembered()
		}
	})
	l := &learner{p: p, known: known}
	entries := l.runs(ctx, runs)
	if runsErr != nil {
		return entries, runsErr
	}
	if requestsErr != nil {
		return entries, requestsErr
	}
	committed := make(map[hbackup.BackupID]bool, len(entries))
	for i := range entries {
		committed[entries[i].ID] = true
	}
	jobs, damage := l.jobs(ctx, requests, committed)
	l.save()
	if damage != nil && !isDamage(damage) {
		return entries, damage
	}
	for _, j := range jobs {
		e, err := openEntry(ctx, p, j)
		if err != nil && !isDamage(err) {
			return entries, err
		}
		e.Unreadable = err
		entries = append(entries, e)
	}
	return entries, damage
}

// listedRun is the record of a run in a listing.
type listedRun struct {
	id   hbackup.BackupID
	size int64 // -1 when the listing does not say
}

// listRuns lists the records of runs, in the order of their ids.
func listRuns(ctx context.Context, p Place) ([]listedRun, error) {
	var all []listedRun
	for o, err := range p.Store.List(ctx, backupsPrefix, storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return all, hbackup.E("list backups in", string(p.Store.Location()), hbackup.KindOther, err)
		}
		if id, err := parseBackupKey(o.Key); err == nil { // other keys are not ours; check reports them
			all = append(all, listedRun{id, o.Size})
		}
	}
	return all, nil
}

// listRequests lists the requests, in the order of their folders.
func listRequests(ctx context.Context, p Place) ([]hbackup.RequestID, error) {
	var all []hbackup.RequestID
	for o, err := range p.Store.List(ctx, jobsPrefix, storage.ListOptions{Folders: true, NamesOnly: true}) {
		if err != nil {
			return all, hbackup.E("list jobs in", string(p.Store.Location()), hbackup.KindOther, err)
		}
		if r, ok := jobFolder(string(o.Key)); ok {
			all = append(all, r)
		}
	}
	return all, nil
}

// isDamage reports whether the error is about one object and says nothing of the
// next.
func isDamage(err error) bool {
	return hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete, hbackup.KindUnsupported)
}

// openEntry describes a run that had no record when the records were listed:
// running while its lease is live, failed otherwise, unless it was committed since.
func openEntry(ctx context.Context, p Place, j Job) (Entry, error) {
	e := Entry{Place: p.Name, Run: Run{Format: j.Format, ID: j.Backup, Request: j.Request, Cluster: j.Cluster, State: StateFailed, Started: j.Created, Host: j.Host, Writer: j.Writer, Selection: j.Selection}}
	for _, t := range j.Tables {
		e.Tables = append(e.Tables, TableRun{Table: t})
	}
	holder, live, err := HolderOf(ctx, p.Store, j.Backup)
	if err != nil {
		return e, err
	}
	if live {
		e.State, e.Holder = StateRunning, holder
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

// TableLease names the lease that a backup holds on a table while it works on it.
// Backups of other tables do not mind.
func TableLease(t hbackup.TableName) string { return "table-" + t.Path() }

// HolderOf gives who held the run's lease last, and whether it is held right now.
func HolderOf(ctx context.Context, s storage.Store, id hbackup.BackupID) (holder lease.Holder, live bool, err error) {
	holder, found, err := lease.Read(ctx, s, RunLease(id))
	if err != nil || !found {
		return holder, false, err
	}
	now, err := s.ServerTime(ctx)
	return holder, err == nil && holder.HeldAt(now), err
}

// Dead reports whether the run is known here and its lease is no longer held.
func Dead(ctx context.Context, s storage.Store, id hbackup.BackupID) (bool, error) {
	_, found, err := lease.Read(ctx, s, RunLease(id))
	if err != nil || !found {
		return false, err
	}
	_, live, err := HolderOf(ctx, s, id)
	return err == nil && !live, err
}

// Found is an image and the place that holds it.
type Found struct {
	Place Place
	Table hbackup.TableName
	ID    hbackup.ImageID
	// Elsewhere finds the other places in which files of the image lie; nil when
	// there are none.
	Elsewhere Elsewhere
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
