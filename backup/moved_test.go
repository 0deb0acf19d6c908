package backup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/e2e/servers"
	"hbackup/storage"
)

// A location is moved as a whole: from one directory to another, and from one bucket
// and prefix to another. Nothing in it tells where it was, all that was in it is there,
// and the next backup goes on from it.
func TestMovedLocation(t *testing.T) {
	type move struct{ from, to place }
	moves := map[string]move{"directory": {place{Dir: t.TempDir() + "/old-place"}, place{Dir: t.TempDir() + "/deeper/new-place"}}}
	if !testing.Short() {
		g := servers.ForTest(t).S3(servers.S3Options{Buckets: []string{"old-place", "new-place"}})
		in := func(bucket, prefix string) place {
			return place{Endpoint: g.Endpoint(), Bucket: bucket, Prefix: prefix, Region: g.Region, AccessKey: g.AccessKey, SecretKey: g.SecretKey}
		}
		moves["S3"] = move{in("old-place", "a"), in("new-place", "b/c/d")}
	}
	for kind, m := range moves {
		t.Run(kind, func(t *testing.T) {
			w, s := matrixWorld(t, m.from)
			if _, err := matrixRun(t.Context(), w, s, "r", 0); err != nil {
				t.Fatal(err)
			}
			nothingAbsolute(t, s, "old-place")
			if m.to.Dir != "" {
				if err := os.MkdirAll(m.to.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			moved, err := m.to.open()
			if err != nil {
				t.Fatal(err)
			}
			defer moved.Close()
			moveAll(t, s, moved)
			goesOn(t, w, moved)
		})
	}
}

// All times of modification are the same, as after a copy by a tool that does not keep
// them: they have no part in anything.
func TestTimesOfModificationMeanNothing(t *testing.T) {
	for _, when := range []time.Time{time.Unix(0, 0), time.Now().Add(1000 * time.Hour)} {
		at := place{Dir: t.TempDir() + "/location"}
		w, s := matrixWorld(t, at)
		if _, err := matrixRun(t.Context(), w, s, "r", 0); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(at.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return os.Chtimes(path, when, when)
		})
		if err != nil {
			t.Fatal(err)
		}
		goesOn(t, w, s)
	}
}

// goesOn fails unless the runs "kept" and "r" are there, whole and in their order, and
// the next one copies nothing.
func goesOn(t *testing.T, w *world, s storage.Store) {
	t.Helper()
	w.store = s
	w.assertWhole(t, map[hbackup.RequestID]int{"kept": 4, "r": 7})
	h := catalog.ReadHistory(t.Context(), []catalog.Place{{Name: "main", Store: w.folder()}})
	// Of two runs within one second of a store that tells no less, either may be first.
	if e := h.Entries; len(e) != 2 || e[0].Started.Before(e[1].Started) && e[0].Request != "kept" {
		t.Fatalf("the history is %+v", e)
	}
	if again, err := matrixRun(t.Context(), w, s, "r", 0); err != nil || !again.AlreadyDone {
		t.Errorf("the same request: %+v, %v", again, err)
	}
	next, err := matrixRun(t.Context(), w, s, "next", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range next.Tables {
		if table.Failure != nil || table.CopiedFiles != 0 {
			t.Errorf("%s: %d files were copied; %+v", table.Table, table.CopiedFiles, table.Failure)
		}
	}
	w.assertWhole(t, map[hbackup.RequestID]int{"kept": 4, "r": 7, "next": 7})
}

// nothingAbsolute fails when an object that is no store file holds the words.
func nothingAbsolute(t *testing.T, s storage.Store, words string) {
	t.Helper()
	looked := 0
	for _, o := range listed(t, s, "") {
		if strings.Contains(string(o.Key), "/archive/") {
			continue // HBase's bytes
		}
		data, _, err := storage.ReadAll(t.Context(), s, o.Key, 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(string(o.Key), ".image") {
			im, err := catalog.DecodeImage(data)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := json.Marshal(im)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, plain...)
		}
		if bytes.Contains(data, []byte(words)) {
			t.Errorf("%s holds %q", o.Key, words)
		}
		looked++
	}
	if looked < 10 {
		t.Errorf("looked at %d objects", looked)
	}
}

// moveAll moves every object, as a tool that knows nothing of hbackup does.
func moveAll(t *testing.T, from, to storage.Store) {
	t.Helper()
	for _, o := range listed(t, from, "") {
		data, _, err := storage.ReadAll(t.Context(), from, o.Key, 64<<20)
		if err == nil {
			_, err = storage.PutBytes(t.Context(), to, o.Key, data, true)
		}
		if err == nil {
			err = from.Delete(t.Context(), o.Key)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("move %s: %w", o.Key, err))
		}
	}
}

func listed(t *testing.T, s storage.Store, prefix string) (all []storage.Object) {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix, storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}
