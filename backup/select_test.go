package backup_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

func (w *world) runSelection(id string, store storage.Store, s hbackup.Selection, earlier ...catalog.Place) (backup.Result, error) {
	w.advance(time.Second) // ids sort by time
	return backup.Run(context.Background(), backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Selection: &s},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main", Earlier: earlier}, backup.Options{Files: 2, Host: "test", Writer: "test"})
}

func tablesOf(r backup.Result) (all []string) {
	for _, t := range r.Tables {
		all = append(all, t.Table.String())
	}
	return all
}

func everything(set string) hbackup.Selection {
	return hbackup.Selection{Set: set, Include: []hbackup.TablePattern{"*"}, Exclude: []hbackup.TablePattern{"*:tmp_*"}}
}

func TestASelectionPicksUpNewTablesAndReportsThoseThatAreGone(t *testing.T) {
	w := newWorld(t)
	bills := hbackup.TableName{Namespace: "ns", Qualifier: "bills"}
	w.add(t, bills, "2.6-gz_diff.hfile")
	w.add(t, hbackup.TableName{Namespace: "ns", Qualifier: "tmp_x"}, "2.6-none.hfile")
	r, err := w.runSelection("one", w.store, everything(""))
	if err != nil || !slices.Equal(tablesOf(r), []string{"ns:bills", "ns:orders"}) || r.Gone != nil {
		t.Fatalf("%v, gone %v, %v", tablesOf(r), r.Gone, err)
	}
	w.add(t, hbackup.TableName{Namespace: "ns", Qualifier: "zoo"}, "2.6-none.hfile")
	delete(w.tables, bills)
	if r, err = w.runSelection("other", w.store, everything("all")); err != nil || r.Gone != nil {
		t.Errorf("another set of tables was compared: %v, %v", r.Gone, err)
	}
	// The one before is found in the old location, too.
	next := mem.New("next", mem.WithClock(w.clock))
	old := catalog.Place{Name: "old", Store: w.folder()}
	for _, at := range []struct {
		store   storage.Store
		earlier []catalog.Place
	}{{next, []catalog.Place{old}}, {w.store, nil}} {
		r, err = w.runSelection("two", at.store, everything(""), at.earlier...)
		if err != nil || !slices.Equal(tablesOf(r), []string{"ns:orders", "ns:zoo"}) || !slices.Equal(r.Gone, []hbackup.TableName{bills}) {
			t.Fatalf("%v, gone %v, %v", tablesOf(r), r.Gone, err)
		}
		stored, err := catalog.ReadRun(context.Background(), prefixed.New(at.store, "prod"), r.ID)
		if err != nil || !slices.Equal(stored.Gone, r.Gone) || !stored.Selection.Equal(everything("")) {
			t.Errorf("recorded %+v, %v", stored, err)
		}
	}
	if r, err = w.runSelection("three", w.store, everything("")); err != nil || r.Gone != nil {
		t.Errorf("reported twice: %v, %v", r.Gone, err)
	}
}

func TestASelectionThatMatchesNothingIsRefused(t *testing.T) {
	w := newWorld(t)
	none := hbackup.Selection{Include: []hbackup.TablePattern{"ns:order"}}
	_, err := w.runSelection("one", w.store, none)
	if !hbackup.IsKind(err, hbackup.KindNotFound) || hbackup.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	for _, bad := range []hbackup.Selection{{}, {Include: []hbackup.TablePattern{"hbase:meta"}}, {Include: []hbackup.TablePattern{"*"}, Exclude: []hbackup.TablePattern{"[a]"}}} {
		if _, err := w.runSelection("one", w.store, bad); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if n := w.keys(t); n != 0 {
		t.Errorf("%d objects were written", n)
	}
}

// A request that is gone on with keeps the tables that its selection came to in
// the beginning, under the numbers that their images have.
func TestARequestKeepsItsTables(t *testing.T) {
	w := newWorld(t)
	bills := hbackup.TableName{Namespace: "ns", Qualifier: "zbills"}
	w.add(t, bills, "2.6-gz_diff.hfile")
	broken, err := faulty.New(w.store, "put[backups/]#*:fail")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.runSelection("r", broken, everything("")); err == nil {
		t.Fatal("the record was written")
	}
	w.add(t, hbackup.TableName{Namespace: "ns", Qualifier: "a"}, "2.6-none.hfile")
	gone := w.tables[bills]
	delete(w.tables, bills)
	if _, err := w.runSelection("r", w.store, hbackup.Selection{Include: []hbackup.TablePattern{"ns:*"}}); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("another selection under the same request id: %v", err)
	}
	r, err := w.runSelection("r", w.store, everything(""))
	w.tables[bills] = gone
	if err != nil || !slices.Equal(tablesOf(r), []string{"ns:orders", "ns:zbills"}) || r.State != catalog.StateComplete {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := len(w.images(t)); n != 2 {
		t.Errorf("%d images", n)
	}
}
