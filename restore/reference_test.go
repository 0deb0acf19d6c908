package restore

import (
	"context"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
)

const elsewhereID = "feedfeedfeedfeedfeedfeedfeedfeed"

// newSplitWorld is a world in which every second file of the image lies in another
// location.
func newSplitWorld(t *testing.T) (w *world, other *mem.Store) {
	t.Helper()
	b := ordersImage(t)
	slices.SortFunc(b.image.Files, catalog.CompareFiles)
	for i := range b.image.Files {
		if i%2 == 0 {
			b.image.Files[i].Location = elsewhereID
		}
	}
	b.image.References = catalog.ReferencesOf(b.image.Files, func(string) storage.Location { return "hdfs://nn:8020/backup/prod" })
	w, other = newWorldOf(t, b), mem.New("other")
	for i := range b.image.Files {
		f := &b.image.Files[i]
		if f.Location == "" {
			continue
		}
		if _, err := storage.PutBytes(t.Context(), other, f.Key(), b.bytes[f.Key()], true); err != nil {
			t.Fatal(err)
		}
		if err := w.store.Delete(t.Context(), f.Key()); err != nil {
			t.Fatal(err)
		}
	}
	w.found.Elsewhere = func(_ context.Context, id string) (catalog.Place, error) {
		if id != elsewhereID {
			return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindNotFound, "it is not in the configuration")
		}
		return catalog.Place{Name: "other", Store: other, LocationID: id}, nil
	}
	return w, other
}

// The files of one image are read from wherever each of them lies.
func TestFilesOfAnotherLocation(t *testing.T) {
	w, _ := newSplitWorld(t)
	o, err := Plan(context.Background(), w.request(), w.target(), w.options())
	if err != nil || len(o.Conflicts) > 0 || o.Files == 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	r, err := w.run()
	if err != nil || r.CopiedFiles != r.Files || r.Files != o.Files {
		t.Fatalf("%+v, %v", r, err)
	}
	w.c.checkTable(restored, w.image)
}

// A location that is not to be had, or does not have what it should, is named before
// anything is written.
func TestAnotherLocationThatFailsIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*testing.T, *world, *mem.Store)
		kind  hbackup.Kind
		says  []string
	}{
		"it is not configured": {func(_ *testing.T, w *world, _ *mem.Store) { w.found.Elsewhere = nil }, hbackup.KindNotFound,
			[]string{"hdfs://nn:8020/backup/prod", elsewhereID, "add that location"}},
		"it cannot be reached": {func(_ *testing.T, w *world, _ *mem.Store) {
			w.found.Elsewhere = func(context.Context, string) (catalog.Place, error) {
				return catalog.Place{}, hbackup.Errorf("open location", "old", hbackup.KindUnavailable, "no name node answers")
			}
		}, hbackup.KindUnavailable, []string{"hdfs://nn:8020/backup/prod", "no name node answers", "try again"}},
		"it cannot be listed": {func(t *testing.T, w *world, other *mem.Store) {
			bad, err := faulty.New(other, "list#*:fail=denied")
			if err != nil {
				t.Fatal(err)
			}
			w.found.Elsewhere = func(context.Context, string) (catalog.Place, error) { return catalog.Place{Store: bad}, nil }
		}, hbackup.KindDenied, []string{"mem://other"}},
		"a file is missing": {func(t *testing.T, w *world, other *mem.Store) {
			if err := other.Delete(t.Context(), w.image.image.Files[0].Key()); err != nil {
				t.Fatal(err)
			}
		}, hbackup.KindIncomplete, []string{"mem://other/archive/", "hbackup verify"}},
		"a file is cut short": {func(t *testing.T, w *world, other *mem.Store) {
			if _, err := storage.PutBytes(t.Context(), other, w.image.image.Files[0].Key(), nil, false); err != nil {
				t.Fatal(err)
			}
		}, hbackup.KindCorrupt, []string{"mem://other/archive/", "hbackup verify"}},
		"the file lies in the image's own location": {func(t *testing.T, w *world, other *mem.Store) {
			key := w.image.image.Files[0].Key()
			if err := other.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if _, err := storage.PutBytes(t.Context(), w.store, key, w.image.bytes[key], true); err != nil {
				t.Fatal(err)
			}
		}, hbackup.KindIncomplete, []string{"mem://other/archive/"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, other := newSplitWorld(t)
			c.spoil(t, w, other)
			before := w.everything()
			_, err := w.run()
			text := ""
			if err != nil {
				text = err.Error() + " " + hbackup.HintOf(err)
			}
			if !hbackup.IsKind(err, c.kind) {
				t.Errorf("got %v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(text, s) {
					t.Errorf("it does not say %q: %s", s, text)
				}
			}
			if now := w.everything(); !slices.Equal(now, before) {
				t.Errorf("something was written: %q, before %q", now, before)
			}
		})
	}
}

// A file that is damaged in the other location is found while it is copied.
func TestDamageInAnotherLocationStopsTheRestore(t *testing.T) {
	w, other := newSplitWorld(t)
	var key storage.Key
	for _, f := range w.image.image.Files {
		if f.Location != "" && f.Size > 0 {
			key = f.Key()
		}
	}
	other.Tamper(key, func(b []byte) []byte { b[0] ^= 1; return b })
	if _, err := w.run(); !hbackup.IsKind(err, hbackup.KindCorrupt) || !strings.Contains(err.Error(), "mem://other/"+string(key)) {
		t.Errorf("got %v", err)
	}
}
