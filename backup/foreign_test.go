package backup_test

import (
	"context"
	"slices"
	"testing"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/mem"
)

// Nothing is written to a location that may be somebody else's, also when the
// request has reached its end there, unless the operator wants it.
func TestALocationThatIsNotOursIsLeftAlone(t *testing.T) {
	directory, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]storage.Store{"mem": mem.New("place"), "file": directory} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store = s
			if _, err := w.run("done", s); err != nil {
				t.Fatal(err)
			}
			for _, key := range []storage.Key{catalog.MarkerKey, "prod/jobs/done/done.json"} {
				if err := s.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(t, s)
			for _, request := range []string{"done", "new"} {
				if _, err := w.run(request, s); !hbackup.IsKind(err, hbackup.KindRefused) || hbackup.HintOf(err) == "" {
					t.Errorf("request %s: %v", request, err)
				}
				if left := w.names(); len(left) > 0 {
					t.Errorf("request %s has left the snapshots %v", request, left)
				}
			}
			if now := contents(t, s); !slices.Equal(now, before) {
				t.Errorf("there was %q and is %q", before, now)
			}
			_, err := backup.Run(t.Context(), backup.Request{ID: "new", Cluster: "prod", Tables: []hbackup.TableName{orders}},
				backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: s, Name: "main"}, backup.Options{Init: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.run("done", s); err != nil {
				t.Error(err)
			}
			if n := len(w.images(t)); n != 2 {
				t.Errorf("%d images", n)
			}
		})
	}
}

// contents gives the keys of all objects.
func contents(t *testing.T, s storage.Store) []storage.Key {
	t.Helper()
	var all []storage.Key
	for o, err := range s.List(context.Background(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Key)
	}
	return all
}
