package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/internal/ui"
)

// assess says from what the locations hold whether all is well.
func (s *session) assess(cl *config.Cluster, state clusterState) clusterInfo {
	a := &assessor{session: s, cl: cl, at: s.now(), state: state, tables: map[hbackup.TableName]*tableHistory{}}
	for i := range state.history.Entries {
		a.take(&state.history.Entries[i])
	}
	c := clusterInfo{Cluster: cl.Name, MaxAgeSeconds: cl.MaxAge.Seconds(), Tables: []tableInfo{}, OpenRuns: []openRun{}}
	for name, t := range a.tables {
		c.Tables = append(c.Tables, a.tableInfo(name, t))
	}
	sortedTables(c.Tables)
	c.Locations = a.locations()
	c.OpenRuns = append(c.OpenRuns, a.openRuns()...)
	c.Problems = a.problems(&c)
	c.Well = len(c.Problems) == 0
	return c
}

// assessor goes along the history of a cluster, the oldest run first.
type assessor struct {
	*session
	cl     *config.Cluster
	at     time.Time
	state  clusterState
	tables map[hbackup.TableName]*tableHistory
	open   []*catalog.Entry
}

// tableHistory is what the runs so far say of a table.
type tableHistory struct {
	restorable time.Time // everything up to then is in the image
	image      catalog.TableRun
	place      string

	last    *catalog.Entry   // run that has reached its end, or died
	run     catalog.TableRun // what became of the table in it
	running bool
	gone    bool
}

func (a *assessor) table(name hbackup.TableName) *tableHistory {
	t := a.tables[name]
	if t == nil {
		t = &tableHistory{}
		a.tables[name] = t
	}
	return t
}

func (a *assessor) take(e *catalog.Entry) {
	if e.Unreadable != nil {
		return // said as a problem
	}
	if e.Finished.IsZero() {
		a.open = append(a.open, e)
	}
	for _, tr := range e.Tables {
		t := a.table(tr.Table)
		if e.State == catalog.StateRunning {
			t.running = true
			continue
		}
		t.last, t.run, t.gone = e, tr, false
		if a.hindrance(e.Place, &tr) == "" && !tr.SnapshotStarted.Before(t.restorable) {
			t.restorable, t.image, t.place = tr.SnapshotStarted, tr, e.Place
		}
	}
	for _, name := range e.Gone {
		a.table(name).gone = true
	}
}

// hindrance says what is known that would keep the image from being restored; ""
// when nothing is.
func (a *assessor) hindrance(place string, t *catalog.TableRun) string {
	switch {
	case t.Image == "":
		return "there is none"
	case t.Caveat != nil:
		return t.Caveat.Message
	case t.SnapshotStarted.IsZero(): // of a run that died, when its manifest could not be read
		return "its manifest cannot be read"
	}
	for _, r := range t.References {
		if !a.state.reached[r.Location] {
			return fmt.Sprintf("some of its files lie in %s, which was not reached", r.Name)
		}
	}
	if images := a.state.stored[place].images; images != nil {
		if _, there := slices.BinarySearch(images[t.Table], t.Image); !there {
			return "its manifest is missing"
		}
	}
	return ""
}

func (a *assessor) tableInfo(name hbackup.TableName, t *tableHistory) tableInfo {
	i := tableInfo{Cluster: a.cl.Name, Table: name, State: a.stateOf(t), restorable: t.restorable}
	if !t.restorable.IsZero() {
		i.RestorableTo, i.AgeSeconds = hbackup.FormatTime(t.restorable), a.at.Sub(t.restorable).Seconds()
		i.Image, i.Location, i.SourceBytes = t.image.Image, t.place, t.image.Totals.Bytes
	}
	switch {
	case t.last != nil:
		i.LastRun, i.LastRunState, i.AddedBytes = t.last.ID, t.last.State, t.run.CopiedBytes
		i.Error = failureDetails(t.run.Failure)
		if why := a.hindrance(t.last.Place, &t.run); i.Error == nil && t.run.Image != "" && why != "" {
			if i.Error = failureDetails(t.run.Caveat); i.Error == nil {
				i.Error = &errorDetails{Kind: string(hbackup.KindIncomplete), Message: ui.OneLine(why), Hint: "hbackup verify " + string(t.run.Image) + " shows what is there"}
			}
		}
	case t.running:
		i.LastRunState = catalog.StateRunning
	}
	for _, place := range slices.Sorted(maps.Keys(a.state.stored)) {
		stored := a.state.stored[place]
		if stored.err != nil {
			i.StoredBytes, i.SharedBytes = nil, nil // part of it would look like the whole
			break
		}
		totals := stored.tables[name]
		i.StoredBytes, i.SharedBytes = plus(i.StoredBytes, totals.Bytes), plus(i.SharedBytes, totals.SharedBytes)
	}
	return i
}

func plus(sum *int64, n int64) *int64 {
	if sum != nil {
		n += *sum
	}
	return &n
}

func (a *assessor) stateOf(t *tableHistory) tableState {
	switch {
	case t.gone:
		return tableGone
	case t.restorable.IsZero():
		return tableNothing
	case t.run.Image == "":
		return tableFailed
	case a.hindrance(t.last.Place, &t.run) != "":
		return tableCaveat
	case a.cl.MaxAge > 0 && a.at.Sub(t.restorable) > a.cl.MaxAge:
		return tableLate
	}
	return tableOK
}

// openRuns gives the runs that work, and those that died and whose tables have not
// all been backed up since.
func (a *assessor) openRuns() []openRun {
	var all []openRun
	for _, e := range a.open {
		r := openRun{Cluster: a.cl.Name, Backup: e.ID, Request: e.Request, Location: e.Place, State: e.State, Started: hbackup.FormatTime(e.Started), Host: e.Host, started: e.Started}
		healed := true
		for _, t := range e.Tables {
			r.Tables = append(r.Tables, t.Table)
			if h := a.tables[t.Table]; !h.gone && h.restorable.Before(e.Started) {
				healed = false
			}
		}
		switch {
		case e.State == catalog.StateRunning:
			r.Advice = "wait for it"
			if e.Host != "" {
				r.Advice = "wait for it; it works on " + e.Host
			}
		case healed:
			continue
		default:
			r.Advice = "go on with it: " + commandOf(a.cl.Name, e.Run)
		}
		all = append(all, r)
	}
	return all
}

func (a *assessor) locations() []locationInfo {
	var all []locationInfo
	for i, loc := range a.cfg.LocationsOf(a.cl) {
		l := locationInfo{Cluster: a.cl.Name, Location: string(loc.Name), Target: i == 0, Reachable: true}
		for _, e := range a.state.history.Entries {
			if e.Place == l.Location && !e.Finished.IsZero() {
				l.Backups++
				l.Newest, l.newest = e.ID, e.Started
			}
		}
		if err := a.state.history.Unreachable[l.Location]; err != nil {
			l.Reachable, l.Error = false, &a.errorsOf(err)[0]
		}
		if stored, known := a.state.stored[l.Location]; known && stored.err != nil {
			if l.Error == nil {
				l.Error = &a.errorsOf(stored.err)[0]
			}
		} else if known {
			l.StoredFiles, l.StoredBytes, l.SharedBytes = &stored.all.Files, &stored.all.Bytes, &stored.all.SharedBytes
		}
		all = append(all, l)
	}
	return all
}

// problems says in lines what is not well, the worst first.
func (a *assessor) problems(c *clusterInfo) []string {
	all := []string{}
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, l := range c.Locations {
		switch {
		case !l.Reachable:
			say("location %s cannot be read, and what it holds is missing here: %s", l.Location, l.Error.Message)
		case l.Error != nil:
			say("what location %s stores is not known: %s", l.Location, l.Error.Message)
		}
	}
	for _, e := range a.state.history.Entries {
		if e.Unreadable != nil {
			say("the record of %s in %s cannot be read: %s", e.ID, e.Place, a.errorsOf(e.Unreadable)[0].Message)
		}
	}
	for _, t := range c.Tables {
		reason := "see hbackup describe " + string(t.LastRun)
		if t.Error != nil {
			reason = t.Error.Message
		}
		if t.LastRunState == catalog.StateFailed && t.State == tableFailed {
			continue // the run is named below
		}
		switch t.State {
		case tableNothing:
			say("table %s has no image that can be restored", t.Table)
		case tableFailed:
			say("table %s: the last backup made no image: %s", t.Table, reason)
		case tableCaveat:
			say("table %s: the last image cannot be restored as it is: %s", t.Table, reason)
		case tableLate:
			say("table %s is late: restorable to %s ago, and %s is allowed", t.Table, hbackup.FormatDuration(a.at.Sub(t.restorable)), hbackup.FormatDuration(a.cl.MaxAge))
		}
	}
	if len(c.Tables) == 0 && len(all) == 0 {
		say("there is no backup yet; make one: hbackup backup --cluster %s", a.cl.Name)
	}
	for _, r := range c.OpenRuns {
		if r.State == catalog.StateFailed {
			say("run %s died; %s", r.Backup, r.Advice)
		}
	}
	return all
}
