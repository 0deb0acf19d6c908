package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/mem"
)

// eachKind runs the test on stores of several kinds; S3's is in package s3.
func eachKind(t *testing.T, test func(t *testing.T, s storage.Store)) {
	t.Run("mem", func(t *testing.T) { test(t, mem.New("place")) })
	t.Run("file", func(t *testing.T) {
		s, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// lay puts objects there and gives the keys of all that is there.
func lay(t *testing.T, s storage.Store, objects map[storage.Key]string) []storage.Key {
	t.Helper()
	for key, text := range objects {
		if _, err := storage.PutBytes(t.Context(), s, key, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
	return keys(t, s)
}

func keys(t *testing.T, s storage.Store) []storage.Key {
	t.Helper()
	var all []storage.Key
	for o, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil && !hbackup.IsKind(err, hbackup.KindNotFound) {
			t.Fatal(err)
		}
		if err == nil {
			all = append(all, o.Key)
		}
	}
	return all
}

// places are what a location may turn out to be, and what is said of it.
var places = map[string]struct {
	objects map[storage.Key]string
	kind    hbackup.Kind // of the refusal
	marked  bool
	adopts  bool // with --init
}{
	"somebody's data":       {objects: map[storage.Key]string{"photos/cat.jpg": "x"}, kind: hbackup.KindRefused, adopts: true},
	"data beside old tries": {objects: map[storage.Key]string{"probe/x": "x", "zoo": "x"}, kind: hbackup.KindRefused, adopts: true},
	"a newer format":        {objects: map[storage.Key]string{"hbackup.json": `{"format":2,"location":"x"}`, "prod/x": "x"}, kind: hbackup.KindUnsupported},
	"a damaged marker":      {objects: map[storage.Key]string{"hbackup.json": `{"format":`}, kind: hbackup.KindCorrupt},
	"an empty marker":       {objects: map[storage.Key]string{"hbackup.json": ``}, kind: hbackup.KindCorrupt},
	"no format":             {objects: map[storage.Key]string{"hbackup.json": `{"location":"x"}`}, kind: hbackup.KindCorrupt},
	"ours":                  {objects: map[storage.Key]string{"hbackup.json": `{"format":1,"location":"x"}`, "zoo": "x"}, marked: true},
	"nothing":               {},
	"old tries":             {objects: map[storage.Key]string{"probe/x": "x"}},
}

func TestWhoseALocationIs(t *testing.T) {
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s storage.Store) {
				before := lay(t, s, p.objects)
				m, err := catalog.Examine(t.Context(), s)
				switch {
				case p.kind != "":
					if !hbackup.IsKind(err, p.kind) || m != nil || hbackup.HintOf(err) == "" && p.kind != hbackup.KindCorrupt {
						t.Fatalf("%+v, %v", m, err)
					}
				case err != nil || (m != nil) != p.marked:
					t.Fatalf("%+v, %v", m, err)
				}
				if now := keys(t, s); !slices.Equal(now, before) {
					t.Errorf("there was %q and is %q", before, now)
				}
			})
		})
	}
}

// A location becomes ours when it is empty, or when the operator says so.
func TestEnsureMarker(t *testing.T) {
	for name, p := range places {
		for _, adopt := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				eachKind(t, func(t *testing.T, s storage.Store) {
					before := lay(t, s, p.objects)
					m, err := catalog.EnsureMarker(t.Context(), s, "one", adopt)
					if p.kind != "" && !(adopt && p.adopts) {
						if !hbackup.IsKind(err, p.kind) {
							t.Errorf("adopt %v: %v", adopt, err)
						}
						if now := keys(t, s); !slices.Equal(now, before) {
							t.Errorf("adopt %v: there was %q and is %q", adopt, before, now)
						}
						return
					}
					if err != nil {
						t.Fatalf("adopt %v: %v", adopt, err)
					}
					again, err := catalog.EnsureMarker(t.Context(), s, "two", false)
					if err != nil || again.ID != m.ID || again.Writer != m.Writer {
						t.Errorf("%+v and %+v, %v", m, again, err)
					}
				})
			})
		}
	}
}

// Backups can be read from a location that lost its marker, but nothing is
// written there.
func TestForReading(t *testing.T) {
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s storage.Store) {
				before := lay(t, s, p.objects)
				place, marked, err := catalog.ForReading(t.Context(), s, "prod", "main")
				if p.kind == hbackup.KindUnsupported {
					if !hbackup.IsKind(err, p.kind) {
						t.Errorf("%v", err)
					}
					return
				}
				_, damaged := p.objects["hbackup.json"]
				if err != nil || marked != damaged || !strings.HasSuffix(string(place.Store.Location()), "/prod") {
					t.Fatalf("%+v, %v, %v", place, marked, err)
				}
				_, err = storage.PutBytes(t.Context(), place.Store, "x", []byte("x"), true)
				if p.marked {
					if err != nil {
						t.Errorf("%v", err)
					}
					return
				}
				if !hbackup.IsKind(err, hbackup.KindReadOnly) {
					t.Errorf("Put: %v", err)
				}
				if err := place.Store.Delete(t.Context(), "x"); !hbackup.IsKind(err, hbackup.KindReadOnly) {
					t.Errorf("Delete: %v", err)
				}
				if now, err := place.Store.ServerTime(t.Context()); err != nil || now.IsZero() {
					t.Errorf("ServerTime: %v, %v", now, err)
				}
				if now := keys(t, s); !slices.Equal(now, before) {
					t.Errorf("there was %q and is %q", before, now)
				}
			})
		})
	}
}
