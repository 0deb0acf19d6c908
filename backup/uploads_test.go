package backup_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/hbase/rootfs"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/lease"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

func locked(t testing.TB) *world { return newWorld(t, mem.WithPermanence(storage.Locked)) }

// settled fails when an upload is held, or on record as if one were.
func (w *world) settled(t *testing.T, what string) {
	t.Helper()
	if left := w.mem().Uploads(); len(left) > 0 {
		t.Errorf("%s: uploads left: %v", what, left)
	}
	if open, err := catalog.OpenUploads(context.Background(), w.folder()); err != nil || len(open) > 0 {
		t.Errorf("%s: records left open: %v, %v", what, open, err)
	}
}

// archived gives the keys of the store files in the location.
func (w *world) archived() []storage.Key {
	var keys []storage.Key
	for k := range w.mem().Snapshot() {
		if strings.HasPrefix(string(k), "prod/archive/") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestALockedLocationIsWrittenByUploads(t *testing.T) {
	w := locked(t)
	var during int
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") {
			during += len(w.archived())
		}
	}}
	r, err := w.run("one", w.store)
	if err != nil || r.State != catalog.StateComplete || r.Committer != string(committer.ProtocolDeferred) {
		t.Fatalf("%+v, %v", r, err)
	}
	if during != 0 || len(w.archived()) != 3 {
		t.Errorf("%d files were seen during the copy, %v after it", during, w.archived())
	}
	w.images(t)
	w.settled(t, "one")
	w.addFile(t, orders, "2.6-zstd_prefix.hfile")
	r, err = w.run("two", w.store)
	if err != nil || r.Tables[0].CopiedFiles != 1 || r.Tables[0].Totals.Files != 4 {
		t.Fatalf("one more file: %+v, %v", r.Tables, err)
	}
	w.settled(t, "two")
	if r, err := newWorld(t).run("plain", newWorld(t).store); err == nil && r.Committer != string(committer.ProtocolDirect) {
		t.Errorf("a plain location is written by %q", r.Committer)
	}
}

// TestKilledBeforeEveryStoreCall has a process die before each of its requests, for
// both committers; the same request again makes the one image and leaves no upload.
func TestKilledBeforeEveryStoreCall(t *testing.T) {
	for _, p := range []storage.Permanence{storage.Deletable, storage.Locked} {
		clean := newWorld(t, mem.WithPermanence(p))
		counted := newDying(clean.mem(), before(0))
		if _, err := clean.run("r", counted); err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= counted.calls; n++ { // before the first there is nothing yet
			t.Run(fmt.Sprintf("%s %d", p, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, mem.WithPermanence(p))
				if !w.kill(t, newDying(w.mem(), before(n)), "r", backup.Options{Files: 2}) {
					return // this time it took fewer calls
				}
				committed := len(w.images(t))
				w.advance(time.Minute)
				r, err := w.run("r", w.store)
				if err != nil || r.State != catalog.StateComplete {
					t.Fatalf("again: %+v, %v", r, err)
				}
				if found := w.images(t); len(found) != 1 || committed == 1 && r.Tables[0].CopiedFiles != 0 && !r.AlreadyDone {
					t.Errorf("%d images before, %d after, %+v", committed, len(found), r.Tables)
				}
				if len(w.archived()) != 3 {
					t.Errorf("the location holds %v", w.archived())
				}
				if r.AlreadyDone { // it does not look at what is left
					w.advance(time.Minute)
					if _, err := w.run("next", w.store); err != nil {
						t.Error(err)
					}
				}
				w.settled(t, "again")
			})
		}
	}
}

// dead leaves a run that has died in the middle of its uploads, in a location that
// begins like another one's.
func dead(t *testing.T, script string) *world {
	t.Helper()
	w := locked(t)
	bad, err := faulty.New(w.store, script)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.HasSuffix(path, w.tables[orders].files[2]) {
			cancel() // interrupted, it leaves what it has
		}
	}}
	_, err = backup.Run(ctx, backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: bad, Name: "main"}, backup.Options{Files: 1})
	if !hbackup.IsKind(err, hbackup.KindInterrupted) {
		t.Fatalf("got %v", err)
	}
	w.fs = rootfs.Local()
	if len(w.mem().Uploads()) < 3 || len(w.archived()) != 0 {
		t.Fatalf("left are the uploads %v and the files %v", w.mem().Uploads(), w.archived())
	}
	w.advance(time.Minute)
	return w
}

func TestTheSameRequestGoesOnWithTheUploads(t *testing.T) {
	w := locked(t)
	if !w.kill(t, newDying(w.mem(), nth(1, "finish", "")), "r", backup.Options{Files: 2}) {
		t.Fatal("it was not killed")
	}
	w.advance(time.Minute)
	counted := metered.New(w.store)
	r, err := w.run("r", counted)
	if err != nil || r.State != catalog.StateComplete || r.Tables[0].Totals.Files != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if c := counted.Counts(); c.FillUpload.Calls != 0 || c.OpenUpload.Calls > 1 { // one is the rehearsal
		t.Errorf("files were sent again: %s", c)
	}
	w.images(t)
	w.settled(t, "again")
}

func TestALaterRunDropsTheUploadsOfADeadOne(t *testing.T) {
	for _, script := range []string{"", "open#2:lost"} {
		w := dead(t, script)
		neighbour, ctx := w.mem(), context.Background()
		for _, key := range []storage.Key{"prod0/archive/data/ns/orders/x", "prod/archive/data/ns/orders0/x", "pro/archive/x"} {
			if _, err := neighbour.OpenUpload(ctx, key, "NEIGHBOUR"); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := w.run("other", w.store); err != nil || r.State != catalog.StateComplete {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := w.mem().Uploads(); len(left) != 3 || slices.ContainsFunc(left, func(k storage.Key) bool { return strings.HasPrefix(string(k), "prod/archive/data/ns/orders/") }) {
			t.Errorf("%q: the uploads are %v", script, left)
		}
		// The dead request can still be brought to its end.
		w.advance(time.Minute)
		if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
			t.Errorf("the dead request: %+v, %v", r, err)
		}
		if n := len(w.images(t)); n != 2 {
			t.Errorf("%d images", n)
		}
		if left := w.mem().Uploads(); len(left) != 3 {
			t.Errorf("at the end: %v", left)
		}
	}
}

// A run that is alive has its uploads left alone, however many others run.
func TestUploadsOfALivingRunAreLeftAlone(t *testing.T) {
	w := dead(t, "open#2:lost")
	job := w.jobs(t)[0]
	alive, err := lease.Acquire(context.Background(), w.folder(), catalog.RunLease(job.Backup), "alive", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	before := w.mem().Uploads()
	if _, err := w.run("other", w.store); err != nil {
		t.Fatal(err)
	}
	if got := w.mem().Uploads(); !slices.Equal(got, before) {
		t.Errorf("of the uploads %v only %v are left", before, got)
	}
	if err := alive.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.run("third", w.store); err != nil {
		t.Fatal(err)
	}
	w.settled(t, "at the end")
}

// Also with the committer direct what a dead run of deferred has left is dropped.
func TestAChangedCommitterTidiesToo(t *testing.T) {
	w := dead(t, "")
	r, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Committer: committer.ProtocolDirect})
	if err != nil || r.Committer != string(committer.ProtocolDirect) {
		t.Fatalf("%+v, %v", r, err)
	}
	w.images(t)
	w.settled(t, "direct")
}

// A table that fails for good leaves nothing.
func TestAFailedTableDropsItsUploads(t *testing.T) {
	w := locked(t)
	if err := os.Truncate(w.path(orders, w.tables[orders].files[1]), 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := w.run("r", w.store); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Fatalf("got %v", err)
	}
	w.settled(t, "failed")
	if left := w.archived(); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

func TestTwoRunsByUploadsAtOnce(t *testing.T) {
	t.Parallel()
	w := locked(t)
	errs := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, err := w.run(fmt.Sprintf("run-%d", i), w.store)
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := len(w.images(t)); n != 4 || len(w.archived()) != 3 {
		t.Errorf("%d images, files %v", n, w.archived())
	}
	w.settled(t, "at the end")
}

func TestDeferredInAStoreThatHoldsNothingIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: struct{ storage.Store }{w.store}, Name: "main"},
		backup.Options{Committer: committer.ProtocolDeferred})
	if !hbackup.IsKind(err, hbackup.KindUnsupported) || w.keys(t) != 0 {
		t.Errorf("got %v, and %d objects", err, w.keys(t))
	}
}

// mem gives the store in memory under the world.
func (w *world) mem() *mem.Store { return w.store.(*mem.Store) }
