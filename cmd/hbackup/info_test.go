package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/prefixed"
)

// informed assesses a history whose runs are given, an hour apart.
func informed(t *testing.T, maxAge time.Duration, runs ...catalog.Run) clusterInfo {
	t.Helper()
	cl := &config.Cluster{Name: "prod", Target: "main", MaxAge: maxAge}
	s := &session{program: &program{now: func() time.Time { return at(10 * time.Hour) }}, cfg: &config.Config{Locations: map[config.LocationName]*config.Location{"main": {Name: "main"}}}}
	var h catalog.History
	for i, r := range runs {
		started := at(time.Duration(i) * time.Hour)
		r.ID, r.Request, r.Started = hbackup.NewBackupID(started), "nightly", started
		r.Tables = slices.Clone(r.Tables)
		for n := range r.Tables {
			if tr := &r.Tables[n]; tr.Image == "some" {
				tr.Image, tr.SnapshotStarted = r.ID.Image(n), started.Add(time.Second)
			}
		}
		if r.State == catalog.StateComplete || r.State == catalog.StatePartial {
			r.Finished = started.Add(time.Minute)
		}
		h.Entries = append(h.Entries, catalog.Entry{Run: r, Place: "main"})
	}
	return s.assess(cl, clusterState{history: h, reached: map[string]bool{"here": true}})
}

// Runs of one table: what became of it.
var (
	good    = catalog.Run{State: catalog.StateComplete, Tables: []catalog.TableRun{{Table: orders, Image: "some"}}}
	cannot  = catalog.Run{State: catalog.StateComplete, Tables: []catalog.TableRun{{Table: orders, Image: "some", Caveat: &catalog.Failure{Kind: hbackup.KindRefused, Message: "it was just split"}}}}
	none    = catalog.Run{State: catalog.StatePartial, Tables: []catalog.TableRun{{Table: orders, Failure: &catalog.Failure{Kind: hbackup.KindCorrupt, Message: "a block is damaged"}}}}
	dead    = catalog.Run{State: catalog.StateFailed, Tables: []catalog.TableRun{{Table: orders}}}
	saved   = catalog.Run{State: catalog.StateFailed, Tables: []catalog.TableRun{{Table: orders, Image: "some"}}}
	unread  = catalog.Run{State: catalog.StateFailed, Tables: []catalog.TableRun{{Table: orders, Image: "20261130T230501.123Z-7f3k2m9q4x.0000"}}}
	working = catalog.Run{State: catalog.StateRunning, Host: "backup1", Tables: []catalog.TableRun{{Table: orders}}}
	dropped = catalog.Run{State: catalog.StateComplete, Gone: []hbackup.TableName{orders}}
	distant = catalog.Run{State: catalog.StateComplete, Tables: []catalog.TableRun{{Table: orders, Image: "some", References: []catalog.Reference{{Location: "there"}}}}}
	near    = catalog.Run{State: catalog.StateComplete, Tables: []catalog.TableRun{{Table: orders, Image: "some", References: []catalog.Reference{{Location: "here"}}}}}
)

func TestTheStateOfATable(t *testing.T) {
	for name, c := range map[string]struct {
		runs       []catalog.Run
		maxAge     time.Duration
		state      tableState
		restorable int // which run it is restorable from; -1 for none
		problems   int
		open       int
	}{
		"backed up":                           {[]catalog.Run{good}, 0, tableOK, 0, 0, 0},
		"twice":                               {[]catalog.Run{good, good}, 0, tableOK, 1, 0, 0},
		"young enough":                        {[]catalog.Run{good, good}, 9 * time.Hour, tableOK, 1, 0, 0},
		"late":                                {[]catalog.Run{good, good}, 8 * time.Hour, tableLate, 1, 1, 0},
		"the last one failed":                 {[]catalog.Run{good, none}, 0, tableFailed, 0, 1, 0},
		"healed":                              {[]catalog.Run{good, none, good}, 0, tableOK, 2, 0, 0},
		"the last one cannot be restored":     {[]catalog.Run{good, cannot}, 0, tableCaveat, 0, 1, 0},
		"none can be restored":                {[]catalog.Run{cannot, cannot}, 0, tableNothing, -1, 1, 0},
		"never":                               {[]catalog.Run{none}, 0, tableNothing, -1, 1, 0},
		"died":                                {[]catalog.Run{good, dead}, 0, tableFailed, 0, 1, 1},
		"died before it had any":              {[]catalog.Run{dead}, 0, tableNothing, -1, 2, 1},
		"died and healed":                     {[]catalog.Run{good, dead, good}, 0, tableOK, 2, 0, 0},
		"died with an image":                  {[]catalog.Run{good, saved}, 0, tableOK, 1, 0, 0},
		"died with an image that is damaged":  {[]catalog.Run{good, unread}, 0, tableCaveat, 0, 2, 1},
		"works":                               {[]catalog.Run{good, working}, 0, tableOK, 0, 0, 1},
		"works for the first time":            {[]catalog.Run{working}, 0, tableNothing, -1, 1, 1},
		"gone":                                {[]catalog.Run{good, dropped}, time.Hour, tableGone, 0, 0, 0},
		"gone and back":                       {[]catalog.Run{good, dropped, good}, 0, tableOK, 2, 0, 0},
		"needs a location that is not there":  {[]catalog.Run{good, distant}, 0, tableCaveat, 0, 1, 0},
		"needs another location that is":      {[]catalog.Run{good, near}, 0, tableOK, 1, 0, 0},
		"the failure is younger than allowed": {[]catalog.Run{good, none}, 24 * time.Hour, tableFailed, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			info := informed(t, c.maxAge, c.runs...)
			if len(info.Tables) != 1 || info.Tables[0].State != c.state || len(info.Problems) != c.problems || len(info.OpenRuns) != c.open || info.Well != (c.problems == 0) {
				t.Fatalf("%+v", info)
			}
			want := ""
			if c.restorable >= 0 {
				want = hbackup.FormatTime(at(time.Duration(c.restorable)*time.Hour + time.Second))
			}
			if got := info.Tables[0].RestorableTo; got != want {
				t.Errorf("restorable to %q, want %q", got, want)
			}
			for _, p := range info.Problems {
				if !strings.Contains(p, "orders") && !strings.Contains(p, "--request-id nightly") {
					t.Errorf("the problem does not say of what: %s", p)
				}
			}
		})
	}
	if info := informed(t, 0); info.Well || len(info.Problems) != 1 {
		t.Errorf("no backup at all: %+v", info)
	}
}

// Sizes are counted from the manifests: each file once, in each location.
func TestInfoCountsWhatIsStored(t *testing.T) {
	main, old := marked(t, "main"), marked(t, "old")
	backedUp(t, old, orders, 0, "a", "b")
	backedUp(t, main, orders, time.Minute, "a", "b", "c")
	backedUp(t, main, orders, 2*time.Minute, "b", "c", "d", "e")
	last := backedUp(t, main, customers, 3*time.Minute, "x")
	// A run that died first has left an image of its second table; it was healed since.
	died(t, main)
	out, stderr, code := command(t, main, old, "info", "--cluster", "prod", "-o", "json")
	var doc infoDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone || !doc.Well {
		t.Fatalf("%v, code %d\n%s%s", err, code, out, stderr)
	}
	c := doc.Clusters[0]
	if len(c.Tables) != 2 || len(c.Locations) != 2 {
		t.Fatalf("%s", out)
	}
	got := c.Tables[1]
	if got.Table != orders || got.SourceBytes != 4000 || *got.StoredBytes != 7000 || *got.SharedBytes != 2000 || got.AddedBytes != 1000 || got.State != tableOK {
		t.Errorf("%+v: stored %d, shared %d", got, *got.StoredBytes, *got.SharedBytes)
	}
	if l := c.Locations[0]; *l.StoredFiles != 6 || *l.StoredBytes != 6000 || *l.SharedBytes != 2000 || l.Backups != 3 || l.Newest != last {
		t.Errorf("%+v", l)
	}
	if l := c.Locations[1]; *l.StoredFiles != 2 || *l.SharedBytes != 0 || l.Backups != 1 {
		t.Errorf("%+v", l)
	}
	// And describe says it of each image.
	told, stderr, code := command(t, main, old, "describe", string(got.LastRun), "--shared", "-o", "json")
	var run runDocument
	if err := json.Unmarshal([]byte(told), &run); err != nil || code != exitDone || run.Tables[0].SharedBytes == nil || *run.Tables[0].SharedBytes != 2000 {
		t.Errorf("%v, code %d\n%s%s", err, code, told, stderr)
	}
	// The second time nothing but listings is needed, and the answer is the same; so
	// it is without an index.
	again, _, _ := command(t, main, old, "info", "--cluster", "prod", "-o", "json", "--set", "index.enabled=false")
	if again != out {
		t.Errorf("without an index\n%s\nwith\n%s", again, out)
	}
	plain, _, _ := command(t, main, old, "info", "--cluster", "prod", "-o", "json", "--no-sizes")
	if strings.Contains(plain, "stored_bytes") {
		t.Errorf("%s", plain)
	}
}

// A record may outlive its image: without the manifest there is nothing to restore.
func TestInfoMissesAManifest(t *testing.T) {
	main, old := marked(t, "main"), marked(t, "old")
	first := backedUp(t, main, orders, 0, "a")
	second := backedUp(t, main, orders, time.Minute, "a")
	if err := prefixed.New(main, "prod").Delete(context.Background(), catalog.ImageKey(orders, second.Image(0))); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := command(t, main, old, "info", "--cluster", "prod", "-o", "json")
	var doc infoDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitPartial {
		t.Fatalf("%v, code %d\n%s%s", err, code, out, stderr)
	}
	if got := doc.Clusters[0].Tables[0]; got.State != tableCaveat || got.Image != first.Image(0) || !strings.Contains(doc.Clusters[0].Problems[0], "its manifest is missing") {
		t.Errorf("%s", out)
	}
}

// A manifest that cannot be read hides no other line.
func TestInfoWithADamagedManifest(t *testing.T) {
	main, old := marked(t, "main"), marked(t, "old")
	id := backedUp(t, main, orders, 0, "a")
	backedUp(t, old, orders, time.Minute, "a")
	if _, err := storage.PutBytes(context.Background(), prefixed.New(main, "prod"), catalog.ImageKey(orders, id.Image(0)), []byte("x"), false); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := command(t, main, old, "info", "--cluster", "prod")
	if code != exitPartial || !strings.Contains(out, "what location main stores is not known") || !strings.Contains(out, "sizes unknown") || !strings.Contains(out, "ns:orders  ok") {
		t.Errorf("code %d\n%s%s", code, out, stderr)
	}
}
