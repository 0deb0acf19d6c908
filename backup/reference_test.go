package backup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/file"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// moved is a cluster whose target was changed from one location to another.
type moved struct {
	*world
	old, new storage.Store
	runs     int
}

// newMoved backs the table up once to the old location.
func newMoved(t *testing.T, old, new storage.Store) *moved {
	t.Helper()
	m := &moved{world: newWorld(t), old: old, new: new}
	m.store = old
	if r := m.backUp(t, old, nil); r.Tables[0].CopiedFiles != 3 {
		t.Fatalf("%+v", r.Tables)
	}
	m.store = new
	return m
}

// place is what a history gives of a location.
func (m *moved) place(t *testing.T, s storage.Store) catalog.Place {
	t.Helper()
	p, _, err := catalog.ForReading(t.Context(), s, "prod", string(s.Location()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// backUp backs up to the target, and may name files in the other location.
func (m *moved) backUp(t *testing.T, target storage.Store, earlier []catalog.Place) backup.Result {
	t.Helper()
	m.advance(time.Hour)
	m.runs++
	r, err := backup.Run(t.Context(), backup.Request{ID: hbackup.RequestID(fmt.Sprintf("r%d", m.runs)), Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: m, FS: m.fs, Root: m.root}, backup.Target{Location: target, Name: "new", Earlier: earlier},
		backup.Options{Files: 2, Host: "test", Writer: "test", Reference: backup.ReferenceAny})
	if err != nil || r.State != catalog.StateComplete {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// found gives the image of a run, which may need all the places.
func (m *moved) found(t *testing.T, s storage.Store, r backup.Result, places ...catalog.Place) []catalog.Found {
	t.Helper()
	return []catalog.Found{{Place: m.place(t, s), Table: orders, ID: r.Tables[0].Image, Elsewhere: func(_ context.Context, id string) (catalog.Place, error) {
		for _, p := range places {
			if p.LocationID == id {
				return p, nil
			}
		}
		return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindNotFound, "it is not configured")
	}}}
}

// whole fails when the image does not verify, by content and by sizes.
func whole(t *testing.T, found []catalog.Found) {
	t.Helper()
	for _, sizes := range []bool{false, true} {
		rep, err := verify.Images(t.Context(), found, verify.Options{Concurrency: 2, SizesOnly: sizes})
		if err != nil || len(rep.Faults) > 0 || rep.Files < 5 {
			t.Fatalf("%+v, %v", rep, err)
		}
	}
}

// in counts the store files of a location.
func in(t *testing.T, s storage.Store) (n int) {
	t.Helper()
	for _, key := range contents(t, s) {
		if strings.HasPrefix(string(key), "prod/archive/") {
			n++
		}
	}
	return n
}

// From a directory, as HDFS is, to a store of objects, and back.
func TestFilesStayInTheEarlierLocation(t *testing.T) {
	dir, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m := newMoved(t, dir, mem.New("new"))
	old := m.place(t, m.old)
	m.addFile(t, orders, "2.6-zstd_prefix.hfile")

	first := m.backUp(t, m.new, []catalog.Place{old})
	l := first.Tables[0]
	if l.CopiedFiles != 1 || l.Totals.Files != 4 || in(t, m.new) != 1 {
		t.Fatalf("got %+v, %d files in the new location", l, in(t, m.new))
	}
	if len(l.References) != 1 || l.References[0].Location != old.LocationID || l.References[0].Files != 3 || l.References[0].Name != old.Store.Location() {
		t.Errorf("references %+v", l.References)
	}
	im, err := catalog.ReadImage(t.Context(), m.folder(), orders, l.Image)
	if err != nil || im.Format != catalog.FormatWithReferences || len(im.References) != 1 || im.References[0].Bytes+l.CopiedBytes != im.Totals.Bytes {
		t.Fatalf("%+v, %v", im, err)
	}
	whole(t, m.found(t, m.new, first, old))

	// The next one says the same, also when only its own location remembers it.
	for _, o := range contents(t, m.old) {
		if strings.HasPrefix(string(o), "prod/images/") {
			if err := m.old.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := m.backUp(t, m.new, []catalog.Place{old})
	if l := second.Tables[0]; l.CopiedFiles != 0 || len(l.References) != 1 || l.References[0].Files != 3 {
		t.Errorf("got %+v", l)
	}
	whole(t, m.found(t, m.new, second, old))

	// Back to the old target: what is there is its own, the rest lies in the other.
	m.addFile(t, orders, "2.6-none.hfile")
	newer := m.place(t, m.new)
	back := m.backUp(t, m.old, []catalog.Place{newer})
	if l := back.Tables[0]; l.CopiedFiles != 1 || len(l.References) != 1 || l.References[0].Location != newer.LocationID || l.References[0].Files != 1 {
		t.Errorf("got %+v", l)
	}
	whole(t, m.found(t, m.old, back, newer))
}

// A location that is moved keeps its id, and so images find their files.
func TestAMovedLocationIsFoundByItsID(t *testing.T) {
	m := newMoved(t, mem.New("old"), mem.New("new"))
	r := m.backUp(t, m.new, []catalog.Place{m.place(t, m.old)})
	elsewhere := mem.New("another bucket")
	for _, key := range contents(t, m.old) {
		b, _, err := storage.ReadAll(t.Context(), m.old, key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		put(t, elsewhere, key, b)
		if err := m.old.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	whole(t, m.found(t, m.new, r, m.place(t, elsewhere)))
}

// Only what an image vouches for, and a listing shows, is worth a reference.
func TestWhatIsNotSureInTheEarlierLocationIsCopied(t *testing.T) {
	for name, c := range map[string]struct {
		copied int
		change func(*testing.T, *moved) []catalog.Place
	}{
		"nothing is wrong":    {0, func(t *testing.T, m *moved) []catalog.Place { return []catalog.Place{m.place(t, m.old)} }},
		"there is no history": {3, func(*testing.T, *moved) []catalog.Place { return nil }},
		"the same place once more": {3, func(t *testing.T, m *moved) []catalog.Place {
			p := m.place(t, m.old)
			b, _, err := storage.ReadAll(t.Context(), m.old, catalog.MarkerKey, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			put(t, m.new, catalog.MarkerKey, b)
			return []catalog.Place{p}
		}},
		"a file is gone": {1, func(t *testing.T, m *moved) []catalog.Place {
			m.old.Delete(t.Context(), "prod/"+m.archive(orders, 1))
			return []catalog.Place{m.place(t, m.old)}
		}},
		"a file is cut short": {1, func(t *testing.T, m *moved) []catalog.Place {
			put(t, m.old, "prod/"+m.archive(orders, 1), []byte("short"))
			return []catalog.Place{m.place(t, m.old)}
		}},
		"no image names them": {3, func(t *testing.T, m *moved) []catalog.Place {
			for _, o := range contents(t, m.old) {
				if strings.HasPrefix(string(o), "prod/images/") {
					m.old.Delete(t.Context(), o)
				}
			}
			return []catalog.Place{m.place(t, m.old)}
		}},
		"its image is damaged": {3, func(t *testing.T, m *moved) []catalog.Place {
			for _, o := range contents(t, m.old) {
				if strings.HasPrefix(string(o), "prod/images/") {
					put(t, m.old, o, []byte("hbackup image 2, or was it"))
				}
			}
			return []catalog.Place{m.place(t, m.old)}
		}},
		"it has no marker": {3, func(t *testing.T, m *moved) []catalog.Place {
			m.old.Delete(t.Context(), catalog.MarkerKey)
			return []catalog.Place{m.place(t, m.old)}
		}},
		"it cannot be listed": {3, func(t *testing.T, m *moved) []catalog.Place {
			p := m.place(t, m.old)
			bad, err := faulty.New(m.old, "list#*:fail=unavailable")
			if err != nil {
				t.Fatal(err)
			}
			p.Store = prefixed.New(bad, "prod")
			return []catalog.Place{p}
		}},
		"it cannot be read": {3, func(t *testing.T, m *moved) []catalog.Place {
			p := m.place(t, m.old)
			bad, err := faulty.New(m.old, "get#*:fail=unavailable")
			if err != nil {
				t.Fatal(err)
			}
			p.Store = prefixed.New(bad, "prod")
			return []catalog.Place{p}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoved(t, mem.New("old"), mem.New("new"))
			earlier := c.change(t, m)
			r := m.backUp(t, m.new, earlier)
			if l := r.Tables[0]; l.CopiedFiles != c.copied || in(t, m.new) != c.copied {
				t.Errorf("got %+v", l)
			}
			whole(t, m.found(t, m.new, r, m.place(t, m.old)))
		})
	}
}

// Damage in the other location is found under its full name there; a location that
// is not to be had is no damage, and is named.
func TestVerifyFollowsReferences(t *testing.T) {
	for _, sizes := range []bool{false, true} {
		m := newMoved(t, mem.New("old"), mem.New("new"))
		old := m.place(t, m.old)
		r := m.backUp(t, m.new, []catalog.Place{old})
		put(t, m.old, "prod/"+m.archive(orders, 1), []byte("short"))
		m.old.Delete(t.Context(), "prod/"+m.archive(orders, 2))
		rep, err := verify.Images(t.Context(), m.found(t, m.new, r, old), verify.Options{SizesOnly: sizes})
		if err != nil || len(rep.Faults) != 2 {
			t.Fatalf("%+v, %v", rep, err)
		}
		for i, kind := range []hbackup.Kind{hbackup.KindCorrupt, hbackup.KindIncomplete} {
			if f := rep.Faults[i]; f.Kind != kind || !f.Damage() || f.Path != "mem://old/prod/"+string(m.archive(orders, i+1)) {
				t.Errorf("got %+v", f)
			}
		}
		rep, err = verify.Images(t.Context(), m.found(t, m.new, r), verify.Options{SizesOnly: sizes})
		if err != nil || len(rep.Faults) != 1 {
			t.Fatalf("%+v, %v", rep, err)
		}
		if f := rep.Faults[0]; f.Damage() || f.Path != "mem://old/prod" || !strings.Contains(f.What, old.LocationID) || !strings.Contains(f.What, "3 of its files") {
			t.Errorf("got %+v", f)
		}
	}
}

// Unless it is asked for, every image is whole in its own location.
func TestWithoutItEveryFileIsCopied(t *testing.T) {
	m := newMoved(t, mem.New("old"), mem.New("new"))
	m.advance(time.Hour)
	r, err := backup.Run(t.Context(), backup.Request{ID: "own", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: m, FS: m.fs, Root: m.root}, backup.Target{Location: m.new, Name: "new", Earlier: []catalog.Place{m.place(t, m.old)}}, backup.Options{})
	if err != nil || r.Tables[0].CopiedFiles != 3 || r.Tables[0].References != nil {
		t.Fatalf("%+v, %v", r.Tables, err)
	}
	m.images(t)
}
