package index

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

// fill commits runs and gives the folder that holds them.
func fill(t testing.TB, s storage.Store, runs int, at time.Time) {
	t.Helper()
	for i := range runs {
		id := hbackup.NewBackupID(at.Add(time.Duration(i) * time.Hour))
		request := hbackup.RequestID(fmt.Sprintf("r-%s", id))
		tables := []hbackup.TableName{{Namespace: "ns", Qualifier: "orders"}, {Namespace: "ns", Qualifier: fmt.Sprint("t", i)}}
		if _, _, err := catalog.CreateJob(context.Background(), s, catalog.Job{Request: request, Verb: "backup", Backup: id, Cluster: "prod", Tables: tables, Created: at}); err != nil {
			t.Fatal(err)
		}
		run := catalog.Run{ID: id, Request: request, Cluster: "prod", State: catalog.StateComplete, Started: at, Finished: at}
		for n, tb := range tables {
			run.Tables = append(run.Tables, catalog.TableRun{Table: tb, Image: id.Image(n), Totals: catalog.Totals{Files: i, Bytes: int64(i) << 20}})
		}
		if _, err := catalog.CommitRun(context.Background(), s, run); err != nil {
			t.Fatal(err)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

var start = time.UnixMilli(1796079901000).UTC()

// read reads the history with the index in dir, and gives the number of records
// that were read from the location.
func read(t testing.TB, dir string, cluster hbackup.ClusterName, location string, s storage.Store) (catalog.History, int64) {
	t.Helper()
	x := Open(dir, cluster, slog.New(slog.DiscardHandler))
	m := metered.New(s)
	h := catalog.ReadHistory(context.Background(), []catalog.Place{{Name: "main", Store: m, Known: x.Location(location)}})
	x.Close()
	if len(h.Unreachable) > 0 {
		t.Fatal(h.Unreachable)
	}
	return h, m.Counts().Get.Calls
}

// want reads the history without an index.
func want(t testing.TB, s storage.Store) catalog.History {
	t.Helper()
	return catalog.ReadHistory(context.Background(), []catalog.Place{{Name: "main", Store: s}})
}

func TestWhatIsKnownIsNotReadAgain(t *testing.T) {
	dir, s := t.TempDir(), mem.New("prod")
	fill(t, s, 20, start)
	for _, reads := range []int64{40, 0} {
		h, n := read(t, dir, "prod", "l1", s)
		if n != reads || !reflect.DeepEqual(h, want(t, s)) {
			t.Fatalf("%d records were read, not %d; %d entries", n, reads, len(h.Entries))
		}
	}
	fill(t, s, 3, start.Add(1000*time.Hour))
	if h, n := read(t, dir, "prod", "l1", s); n != 6 || len(h.Entries) != 23 {
		t.Errorf("three more: %d records were read, %d entries", n, len(h.Entries))
	}
	// What is gone from the location is gone from the history, and from the index.
	gone := want(t, s).Entries[4]
	for _, key := range []storage.Key{catalog.BackupKey(gone.ID), catalog.JobKey(gone.Request)} {
		if err := s.Delete(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
	h, n := read(t, dir, "prod", "l1", s)
	if n != 0 || len(h.Entries) != 22 || !reflect.DeepEqual(h, want(t, s)) {
		t.Errorf("one less: %d records were read, %d entries", n, len(h.Entries))
	}
	x := Open(dir, "prod", slog.New(slog.DiscardHandler))
	defer x.Close()
	known := x.Location("l1").Load()
	if len(known.Runs) != 22 || len(known.Jobs) != 22 || slices.ContainsFunc(known.Runs, func(r catalog.Entry) bool { return r.ID == gone.ID }) {
		t.Errorf("%d runs and %d jobs are remembered, of 22", len(known.Runs), len(known.Jobs))
	}
}

// A record of another size than the remembered one is read.
func TestARecordOfAnotherSizeIsReadAgain(t *testing.T) {
	dir, s := t.TempDir(), mem.New("prod")
	fill(t, s, 3, start)
	read(t, dir, "prod", "l1", s)
	run := want(t, s).Entries[1].Run
	run.Host = "another host"
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(context.Background(), s, catalog.BackupKey(run.ID), b, false); err != nil {
		t.Fatal(err)
	}
	if h, n := read(t, dir, "prod", "l1", s); n != 1 || h.Entries[1].Host != "another host" {
		t.Errorf("%d records were read; host %q", n, h.Entries[1].Host)
	}
}

// Two locations may hold the same key; a location that was emptied and filled
// anew has another id.
func TestLocationsAreKeptApart(t *testing.T) {
	dir, one, two := t.TempDir(), mem.New("one"), mem.New("two")
	fill(t, one, 2, start)
	read(t, dir, "prod", "l1", one)
	run := want(t, one).Entries[0].Run
	other := run
	other.Host = "another"
	if _, err := catalog.CommitRun(context.Background(), two, other); err != nil {
		t.Fatal(err)
	}
	if h, n := read(t, dir, "prod", "l2", two); n != 1 || h.Entries[0].Host != "another" {
		t.Errorf("%d reads, host %q", n, h.Entries[0].Host)
	}
}

// Whatever becomes of the index, the answers are the same, and the next index is
// good again.
func TestABadIndexChangesNoAnswer(t *testing.T) {
	s := mem.New("prod")
	fill(t, s, 30, start)
	good := want(t, s)
	fresh := func(t *testing.T) string {
		dir := t.TempDir()
		read(t, dir, "prod", "l1", s)
		return dir
	}
	rewrite := func(t *testing.T, file string, f func([]byte) []byte) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(dir string) string { return filepath.Join(dir, "prod.index") }
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"deleted":        func(t *testing.T, dir string) { os.Remove(file(dir)) },
		"digest deleted": func(t *testing.T, dir string) { os.Remove(digestFile(file(dir))) },
		"empty":          func(t *testing.T, dir string) { rewrite(t, file(dir), func([]byte) []byte { return nil }) },
		"cut":            func(t *testing.T, dir string) { rewrite(t, file(dir), func(b []byte) []byte { return b[:len(b)/2] }) },
		"cut to a page":  func(t *testing.T, dir string) { rewrite(t, file(dir), func(b []byte) []byte { return b[:4096] }) },
		"zeroed": func(t *testing.T, dir string) {
			rewrite(t, file(dir), func(b []byte) []byte { clear(b[8192:]); return b })
		},
		"no index at all": func(t *testing.T, dir string) {
			rewrite(t, file(dir), func([]byte) []byte { return []byte("hello, world") })
		},
		"older format": func(t *testing.T, dir string) {
			rewrite(t, digestFile(file(dir)), func(b []byte) []byte { return []byte("hbackup index 0: x") })
		},
		"of a version that knows other fields": func(t *testing.T, dir string) {
			rewrite(t, digestFile(file(dir)), func(b []byte) []byte {
				return bytes.Replace(b, []byte(form.String()), []byte(storage.Digest(1).String()), 1)
			})
		},
		"of another cluster": func(t *testing.T, dir string) {
			other := t.TempDir()
			s2 := mem.New("x")
			fill(t, s2, 5, start)
			read(t, other, "prod", "l9", s2)
			copyIndex(t, other, dir)
		},
		"from before, with its digest": func(t *testing.T, dir string) {
			old := t.TempDir()
			s2 := mem.New("x")
			fill(t, s2, 1, start)
			read(t, old, "prod", "l1", s2)
			copyIndex(t, old, dir)
		},
		"a directory":          func(t *testing.T, dir string) { os.Remove(file(dir)); os.Mkdir(file(dir), 0o700) },
		"unreadable directory": func(t *testing.T, dir string) { os.RemoveAll(dir); os.WriteFile(dir, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := fresh(t)
			spoil(t, dir)
			for range 2 {
				if h, _ := read(t, dir, "prod", "l1", s); !reflect.DeepEqual(h, good) {
					t.Fatalf("another history: %d entries", len(h.Entries))
				}
			}
			if name == "unreadable directory" {
				return
			}
			if _, n := read(t, dir, "prod", "l1", s); n != 0 {
				t.Errorf("the index was not made anew: %d records were read", n)
			}
		})
	}
	dir := fresh(t)
	whole, err := os.ReadFile(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	step := max(1, len(whole)/200)
	for at := 0; at < len(whole); at += step {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(file(dir), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if h, _ := read(t, dir, "prod", "l1", s); !reflect.DeepEqual(h, good) {
			t.Fatalf("another history with byte %d flipped", at)
		}
	}
}

func copyIndex(t *testing.T, from, to string) {
	t.Helper()
	for _, f := range []string{"prod.index", "prod.index.sum"} {
		b, err := os.ReadFile(filepath.Join(from, f))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Another process that holds the index, for reading or for writing, keeps nobody
// from an answer.
func TestAnIndexInUse(t *testing.T) {
	s := mem.New("prod")
	fill(t, s, 5, start)
	for name, readOnly := range map[string]bool{"read": true, "written": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			read(t, dir, "prod", "l1", s)
			// A second handle of bbolt in this process takes the same lock as another
			// process would: flock goes by open file.
			db, err := bolt.Open(filepath.Join(dir, "prod.index"), 0o600, &bolt.Options{ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			h, n := read(t, dir, "prod", "l1", s)
			if !reflect.DeepEqual(h, want(t, s)) {
				t.Error("another history")
			}
			if reads := map[bool]int64{true: 0, false: 10}[readOnly]; n != reads {
				t.Errorf("%d records were read, not %d", n, reads)
			}
		})
	}
}

// A location that nobody asked about for long is forgotten when something is
// written.
func TestUnusedLocationsAreForgotten(t *testing.T) {
	dir, s := t.TempDir(), mem.New("prod")
	fill(t, s, 5, start)
	read(t, dir, "prod", "old", s)
	x := Open(dir, "prod", slog.New(slog.DiscardHandler))
	x.now = func() time.Time { return time.Now().Add(unusedFor + time.Hour) }
	x.Location("new").Save(catalog.Remembered{Jobs: []catalog.RememberedJob{{Request: "r", Verb: "restore"}}})
	x.Close()
	if _, n := read(t, dir, "prod", "old", s); n != 10 {
		t.Errorf("%d records were read", n)
	}
	x = Open(dir, "prod", slog.New(slog.DiscardHandler))
	defer x.Close()
	if jobs := x.Location("new").Load().Jobs; len(jobs) != 1 || jobs[0].Verb != "restore" {
		t.Errorf("the used one is forgotten: %+v", jobs)
	}
}

func BenchmarkHistory10000(b *testing.B) {
	b.ReportAllocs()
	dir, s := b.TempDir(), mem.New("prod")
	fill(b, s, 10_000, start)
	read(b, dir, "prod", "l1", s)
	for b.Loop() {
		if h, n := read(b, dir, "prod", "l1", s); n != 0 || len(h.Entries) != 10_000 {
			b.Fatal(n, len(h.Entries))
		}
	}
}

// Readers and writers in many processes, each with a handle of its own: the lock is
// held for moments only, and every answer is whole.
func TestReadersAndWritersAtOnce(t *testing.T) {
	dir, s := t.TempDir(), mem.New("prod")
	fill(t, s, 100, start)
	read(t, dir, "prod", "l1", s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				before := want(t, s).Entries
				x := Open(dir, "prod", quiet)
				h := catalog.ReadHistory(context.Background(), []catalog.Place{{Name: "main", Store: s, Known: x.Location("l1")}})
				x.Close()
				if len(h.Unreachable) > 0 || len(h.Entries) < len(before) || !reflect.DeepEqual(h.Entries[:len(before)], before) {
					t.Errorf("another history: %d entries of %d, %v", len(h.Entries), len(before), h.Unreachable)
				}
			}
		})
	}
	for i := range 10 {
		fill(t, s, 1, start.Add(time.Duration(1000+i)*time.Hour))
		read(t, dir, "prod", "l1", s)
	}
	wg.Wait()
	read(t, dir, "prod", "l1", s)
	if h, n := read(t, dir, "prod", "l1", s); n != 0 || !reflect.DeepEqual(h, want(t, s)) {
		t.Errorf("%d records were read afterwards; %d entries", n, len(h.Entries))
	}
}

// A process that has read the index and still works keeps nobody from writing it.
func TestALongRunHoldsNoLock(t *testing.T) {
	dir, s := t.TempDir(), mem.New("prod")
	fill(t, s, 3, start)
	read(t, dir, "prod", "l1", s)
	long := Open(dir, "prod", quiet)
	defer long.Close()
	if n := len(long.Location("l1").Load().Runs); n != 3 {
		t.Fatalf("%d runs", n)
	}
	fill(t, s, 1, start.Add(1000*time.Hour))
	read(t, dir, "prod", "l1", s)
	if _, n := read(t, dir, "prod", "l1", s); n != 0 {
		t.Errorf("%d records were read: the index was not written", n)
	}
}
