package catalog

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"hbackup"
)

// readers is how many records of one location are read at the same time. The
// location's own limits bound it further.
const readers = 16

// learner compares listings with what is remembered, reads what is not, and finds
// out whether there is anything new to remember.
type learner struct {
	p     Place
	known Remembered

	next    Remembered
	changed bool
}

// runs gives an entry for each record, which are in the order of their ids.
func (l *learner) runs(ctx context.Context, listed []listedRun) []Entry {
	known, knownSizes := l.known.Runs, l.known.Sizes
	if len(known) == len(listed) && l.allKnown(listed) {
		for i := range known {
			known[i].Place = l.p.Name
		}
		l.next.Runs, l.next.Sizes = known, knownSizes
		return known
	}
	entries := make([]Entry, len(listed))
	sizes := make([]int64, len(listed))
	var unread []int
	for i, o := range listed {
		id := o.id
		for len(known) > 0 && known[0].ID < id {
			known, knownSizes = known[1:], knownSizes[1:]
		}
		e := &entries[i]
		e.Place = l.p.Name
		if len(known) > 0 && known[0].ID == id && (o.size < 0 || o.size == knownSizes[0]) {
			e.Run, sizes[i] = known[0].Run, knownSizes[0]
			continue
		}
		e.Run = Run{ID: id, State: StateFailed}
		unread = append(unread, i)
	}
	parallel(len(unread), readers, func(n int) {
		i := unread[n]
		e := &entries[i]
		key := BackupKey(e.ID)
		b, err := readRecord(ctx, l.p.Store, key)
		var r Run
		if err == nil {
			err = decodeRecord(l.p.Store.Location().At(key), b, &r, &r.Format, RunFormat)
		}
		if err == nil {
			err = r.mustBe(e.ID, l.p.Store)
		}
		if err != nil {
			e.Unreadable = err
			return
		}
		e.Run, sizes[i] = r, int64(len(b))
	})
	if l.p.Known == nil {
		return entries
	}
	for i := range entries {
		if entries[i].Unreadable == nil {
			l.next.Runs = append(l.next.Runs, Entry{Run: entries[i].Run})
			l.next.Sizes = append(l.next.Sizes, sizes[i])
		}
	}
	// A record that cannot be read, again, is nothing new.
	l.changed = len(l.next.Runs) != len(l.known.Runs) || slices.ContainsFunc(unread, func(i int) bool { return entries[i].Unreadable == nil })
	return entries
}

// allKnown reports whether exactly the records that are remembered are listed.
func (l *learner) allKnown(listed []listedRun) bool {
	for i, o := range listed {
		if l.known.Runs[i].ID != o.id || o.size >= 0 && o.size != l.known.Sizes[i] {
			return false
		}
	}
	return true
}

// jobs gives the requests for a backup of which no record is listed: the jobs are
// read, as a request that is remembered may be one that was removed and made anew.
// One that is damaged does not keep the others from being read; the error is for
// the first that could not be read.
func (l *learner) jobs(ctx context.Context, listed []hbackup.RequestID, committed map[hbackup.BackupID]bool) (open []Job, first error) {
	all := make([]RememberedJob, len(listed))
	var unread []int
	known := l.known.Jobs
	for i, request := range listed {
		for len(known) > 0 && compareFolders(known[0].Request, request) < 0 {
			known = known[1:]
		}
		if len(known) > 0 && known[0].Request == request && (known[0].Verb != "backup" || committed[known[0].Backup]) {
			all[i] = known[0]
			continue
		}
		unread = append(unread, i)
	}
	jobs := make([]Job, len(unread))
	errs := make([]error, len(unread))
	parallel(len(unread), readers, func(n int) { jobs[n], errs[n] = ReadJob(ctx, l.p.Store, listed[unread[n]]) })
	for n, j := range jobs {
		switch err := errs[n]; {
		case hbackup.IsKind(err, hbackup.KindNotFound): // a folder without a request
		case err != nil && (first == nil || isDamage(first) && !isDamage(err)):
			first = err
		case err == nil:
			all[unread[n]] = RememberedJob{listed[unread[n]], j.Verb, j.Backup}
			if j.Verb == "backup" && !committed[j.Backup] {
				open = append(open, j)
			}
		}
	}
	l.next.Jobs = slices.DeleteFunc(all, func(j RememberedJob) bool { return j.Request == "" })
	l.changed = l.changed || !slices.Equal(l.next.Jobs, l.known.Jobs)
	return open, first
}

// save remembers what is new, when there is something.
func (l *learner) save() {
	if l.changed && l.p.Known != nil {
		l.p.Known.Save(l.next)
	}
}

// parallel calls f with every number below n, on at most workers goroutines.
func parallel(n, workers int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, workers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
