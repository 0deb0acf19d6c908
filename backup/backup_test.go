package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/lease"
	"hbackup/storage/mem"
)

func TestARunMakesAnImageThatVerifies(t *testing.T) {
	w := newWorld(t)
	r, err := w.run("one", w.store)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != catalog.StateComplete || len(r.Tables) != 1 || r.Tables[0].CopiedFiles != 3 || r.AlreadyDone {
		t.Errorf("got %+v", r)
	}
	if n := len(w.images(t)); n != 1 {
		t.Errorf("%d images", n)
	}
	if left := w.names(); len(left) != 0 {
		t.Errorf("snapshots left: %v", left)
	}
	im, err := catalog.ReadImage(context.Background(), w.folder(), orders, r.Tables[0].Image)
	if err != nil {
		t.Fatal(err)
	}
	if im.Namespace["quota"] != "7" || im.ClusterID != "the-cluster" || !im.SnapshotStarted.Equal(w.now) || im.SnapshotFinished.Before(im.SnapshotStarted) {
		t.Errorf("header %+v", im.Header)
	}
	// What HBase's tools read: the manifest as it was, the description under the image's name.
	m, err := snapshot.ReadFrom(func(name string) ([]byte, error) {
		b, _, err := storage.ReadAll(context.Background(), w.folder(), catalog.SnapshotKey(im.ID, name), 1<<20)
		return b, err
	})
	if err != nil || m.Description.Name != string(im.ID) || m.Description.TTL != 0 || m.Description.Table != orders {
		t.Errorf("HBase's files: %+v, %v", m, err)
	}
}

func TestASecondRunCopiesOnlyWhatIsNew(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run("one", w.store); err != nil {
		t.Fatal(err)
	}
	r, err := w.run("two", w.store)
	if err != nil || r.Tables[0].CopiedFiles != 0 || r.Tables[0].Totals.Files != 3 {
		t.Fatalf("unchanged: %+v, %v", r.Tables, err)
	}
	w.addFile(t, orders, "2.6-zstd_prefix.hfile")
	r, err = w.run("three", w.store)
	if err != nil || r.Tables[0].CopiedFiles != 1 || r.Tables[0].Totals.Files != 4 {
		t.Fatalf("one more file: %+v, %v", r.Tables, err)
	}
}

func TestARequestThatIsDoneIsConfirmed(t *testing.T) {
	w := newWorld(t)
	first, err := w.run("nightly", w.store)
	if err != nil {
		t.Fatal(err)
	}
	w.failCall = w.calls + 1 // the cluster is not even asked
	again, err := w.run("nightly", w.store)
	if err != nil || !again.AlreadyDone || again.ID != first.ID {
		t.Fatalf("got %+v, %v", again, err)
	}
	w.failCall = 0
	if _, err := w.run("nightly", w.store, orders, hbackup.TableName{Namespace: "ns", Qualifier: "more"}); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("the same id for other tables: %v", err)
	}
}

func TestRefusalsWriteNothing(t *testing.T) {
	for name, try := range map[string]func(*world) error{
		"no such table": func(w *world) error {
			_, err := w.run("x", w.store, orders, hbackup.TableName{Namespace: "ns", Qualifier: "nope"})
			return err
		},
		"system table": func(w *world) error {
			_, err := w.run("x", w.store, hbackup.TableName{Namespace: "hbase", Qualifier: "meta"})
			return err
		},
		"bad request id":      func(w *world) error { _, err := w.run("a/b", w.store); return err },
		"a table named twice": func(w *world) error { _, err := w.run("x", w.store, orders, orders); return err },
		"wrong root":          func(w *world) error { w.root += "/nowhere"; _, err := w.run("x", w.store); return err },
		"master away":         func(w *world) error { w.failCall = 1; _, err := w.run("x", w.store); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := try(w); err == nil || hbackup.KindOf(err) == hbackup.KindOther {
				t.Errorf("got %v", err)
			}
			if n := w.keys(t); n != 0 {
				t.Errorf("%d objects were written", n)
			}
			if len(w.snapshots) != 0 {
				t.Errorf("snapshots: %v", w.names())
			}
		})
	}
}

func TestEveryMissingTableIsNamed(t *testing.T) {
	w := newWorld(t)
	_, err := w.run("x", w.store, hbackup.TableName{Namespace: "ns", Qualifier: "nope"}, orders, hbackup.TableName{Namespace: "ns", Qualifier: "neither"})
	if !hbackup.IsKind(err, hbackup.KindNotFound) || !strings.Contains(err.Error(), "ns:nope, ns:neither") || !strings.Contains(hbackup.HintOf(err), "no table was backed up") {
		t.Errorf("%v (%s)", err, hbackup.HintOf(err))
	}
}

// Every call to the store fails once, before and after its effect: the run may
// fail, but nothing that does not verify is ever committed, and the same request
// afterwards makes exactly one image.
func TestEveryStoreCallFailsOnce(t *testing.T) {
	t.Parallel()
	for p, faults := range map[storage.Permanence][]string{
		storage.Deletable: {"fail=denied", "fail", "lost", "half"},
		storage.Locked:    {"fail=denied", "lost"}, // the others cost a second each; the committer's own tests have them
	} {
		if p == storage.Deletable && !testing.Short() {
			faults = append(faults, "twice", "late=3")
		}
		t.Run(string(p), func(t *testing.T) { everyStoreCallFailsOnce(t, faults, mem.WithPermanence(p)) })
	}
}

func everyStoreCallFailsOnce(t *testing.T, faults []string, opts ...mem.Option) {
	clean := newWorld(t, opts...)
	counted, err := faulty.New(clean.store, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clean.run("r", counted); err != nil {
		t.Fatal(err)
	}
	calls := counted.Calls()["any"]
	if calls < 10 {
		t.Fatalf("only %d calls", calls)
	}
	for n := 1; n <= calls; n++ {
		for _, fault := range faults {
			t.Run(fmt.Sprintf("%d %s", n, fault), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, opts...)
				bad, err := faulty.New(w.store, fmt.Sprintf("any#%d:%s", n, fault))
				if err != nil {
					t.Skip("the fault has no meaning for every operation")
				}
				first, err := w.run("r", bad)
				found := w.images(t)
				if err == nil && (first.State != catalog.StateComplete || len(found) != 1) {
					t.Fatalf("success with %+v and %d images", first, len(found))
				}
				w.now = w.now.Add(2 * time.Minute) // the lease of a run that could not give it back
				again, err := w.run("r", w.store)
				if err != nil || again.State != catalog.StateComplete {
					t.Fatalf("again: %+v, %v", again, err)
				}
				if n := len(w.images(t)); n != 1 {
					t.Fatalf("%d images after the same request twice", n)
				}
				if left := w.names(); len(left) != 0 {
					t.Errorf("snapshots left: %v", left)
				}
				// What could not be tidied for lack of an answer is so by the next run.
				if left := w.mem().Uploads(); len(left) != 0 {
					if _, err := w.run("next", w.store); err != nil {
						t.Error(err)
					}
				}
				if left := w.mem().Uploads(); len(left) != 0 {
					t.Errorf("uploads left: %v", left)
				}
			})
		}
	}
}

func TestEveryMasterCallFailsOnce(t *testing.T) {
	clean := newWorld(t)
	if _, err := clean.run("r", clean.store); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= clean.calls; n++ {
		w := newWorld(t)
		w.failCall = n
		if _, err := w.run("r", w.store); err == nil && len(w.images(t)) != 1 {
			t.Errorf("call %d failed: success without an image", n)
		}
		w.images(t)
		if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
			t.Errorf("call %d failed, then again: %+v, %v", n, r, err)
		}
		// Deleting the snapshot may have been what failed; the next run of the
		// location clears it away.
		if _, err := w.run("next", w.store); err != nil {
			t.Fatal(err)
		}
		if left := w.names(); len(left) != 0 {
			t.Errorf("call %d failed: snapshots left: %v", n, left)
		}
	}
}

func TestASnapshotDeletedDuringTheCopyCommitsNothing(t *testing.T) {
	w := newWorld(t)
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") {
			for _, n := range w.names() {
				w.drop(n)
			}
		}
	}}
	_, err := w.run("r", w.store)
	if !hbackup.IsKind(err, hbackup.KindIncomplete) || !strings.Contains(err.Error(), "was deleted during the copy") || hbackup.HintOf(err) == "" {
		t.Fatalf("got %v", err)
	}
	if n := len(w.images(t)); n != 0 {
		t.Fatalf("%d images were committed", n)
	}
}

func TestAFileMovedToTheArchiveIsFollowed(t *testing.T) {
	w := newWorld(t)
	moved := 0
	var mu sync.Mutex
	w.fs = hookedFS{w.fs, func(path string) {
		if !strings.Contains(path, "/data/ns/orders/") || strings.Contains(path, "/archive/") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		to := filepath.Join(w.root, "archive", strings.TrimPrefix(path, w.root))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(path, to)); err == nil {
			moved++
		}
	}}
	if _, err := w.run("r", w.store); err != nil {
		t.Fatal(err)
	}
	if moved != 3 || len(w.images(t)) != 1 {
		t.Errorf("%d files were moved under the run", moved)
	}
}

func TestDamageAtTheSourceIsFoundAndNotCommitted(t *testing.T) {
	for _, at := range []int{0, 100, 2000, -3000, -1} {
		w := newWorld(t)
		path := w.path(orders, w.tables[orders].files[1])
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[(at+len(b))%len(b)] ^= 0x20
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = w.run("r", w.store)
		if !hbackup.IsKind(err, hbackup.KindCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("byte %d flipped: %v", at, err)
		}
		if n := len(w.images(t)); n != 0 {
			t.Errorf("byte %d flipped: %d images", at, n)
		}
		if ok, err := storage.Exists(context.Background(), w.folder(), storage.Key("archive/data/ns/orders/"+string(w.tables[orders].region)+"/f/"+w.tables[orders].files[1])); ok || err != nil {
			t.Errorf("byte %d flipped: the damaged file is in the location (%v)", at, err)
		}
	}
}

func TestOneBadTableDoesNotStopTheOthers(t *testing.T) {
	w := newWorld(t)
	other := hbackup.TableName{Namespace: "ns", Qualifier: "broken"}
	w.add(t, other, "2.6-none.hfile")
	if err := os.Truncate(w.path(other, w.tables[other].files[0]), 5000); err != nil {
		t.Fatal(err)
	}
	r, err := w.run("r", w.store, other, orders)
	if err != nil || r.State != catalog.StatePartial {
		t.Fatalf("%+v, %v", r, err)
	}
	if f := r.Tables[0].Failure; f == nil || f.Kind != hbackup.KindCorrupt || r.Tables[1].Image == "" {
		t.Errorf("%+v", r.Tables)
	}
	if left := w.names(); len(left) != 0 {
		t.Errorf("snapshots left: %v", left)
	}
}

// A table whose regions have a hole, or are split and half compacted, is backed up
// as it is; that no restore would take it is said now and not when it is needed.
func TestAnImageThatCouldNotBeRestoredSaysSo(t *testing.T) {
	w := newWorld(t)
	w.shape = func(m *snapshot.Manifest) {
		r := &m.Regions[0]
		r.EndKey, r.RawInfo = []byte("m"), snapshot.EncodeRegionInfo(orders, nil, []byte("m"), 1)
	}
	for _, id := range []string{"one", "one"} { // the second time from the record
		r, err := w.run(id, w.store)
		if err != nil || r.State != catalog.StateComplete {
			t.Fatalf("%+v, %v", r, err)
		}
		if c := r.Tables[0].Caveat; c == nil || !strings.Contains(c.Message, "no region holds the rows") || c.Hint == "" {
			t.Errorf("got %+v", c)
		}
		im, err := catalog.ReadImage(context.Background(), w.folder(), orders, r.Tables[0].Image)
		if err != nil || im.Caveat == nil {
			t.Errorf("%+v, %v", im, err)
		}
	}
	w.shape = nil
	if r, err := w.run("two", w.store); err != nil || r.Tables[0].Caveat != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestLeftoversOfDeadRunsAreDroppedAndNoOthers(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	if _, err := w.run("first", w.store); err != nil {
		t.Fatal(err)
	}
	dead, alive := hbackup.NewBackupID(w.now), hbackup.NewBackupID(w.now)
	if _, err := lease.Acquire(ctx, w.folder(), catalog.RunLease(dead), "killed", time.Minute); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(5 * time.Minute)
	if _, err := lease.Acquire(ctx, w.folder(), catalog.RunLease(alive), "at work", time.Minute); err != nil {
		t.Fatal(err)
	}
	stay := []string{"hbackup.prod." + string(alive.Image(0)), "hbackup.prod." + string(hbackup.NewBackupID(w.now).Image(0)),
		"hbackup.other." + string(dead.Image(0)), "hbackup.prod.something", "users_own"}
	for _, n := range append(stay, "hbackup.prod."+string(dead.Image(0)), "hbackup.prod."+string(dead.Image(17))) {
		w.snapshots[n] = rpc.SnapshotInfo{Name: n, Table: orders, Created: w.now}
	}
	if _, err := w.run("second", w.store); err != nil {
		t.Fatal(err)
	}
	for _, n := range stay {
		if _, there := w.snapshots[n]; !there {
			t.Errorf("%s was deleted", n)
		}
	}
	if len(w.snapshots) != len(stay) {
		t.Errorf("left: %v", w.names())
	}
}

func TestTwoRunsOfOneTableAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.run("marker", w.store); err != nil {
		t.Fatal(err)
	}
	w.addFile(t, orders, "2.6-zstd_prefix.hfile")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = w.run(fmt.Sprintf("run-%d", i), w.store) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	seen := map[hbackup.ImageID]bool{}
	ctx := context.Background()
	for o, err := range w.folder().List(ctx, "images/", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[hbackup.ImageID(o.Key)] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d images", len(seen))
	}
}

func TestCancelLeavesTheRequestOpenAndNoSnapshot(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") {
			cancel(context.Canceled)
		}
	}}
	if _, err := runWith(ctx, w, "r"); !hbackup.IsKind(err, hbackup.KindInterrupted) {
		t.Fatalf("got %v", err)
	}
	if left := w.names(); len(left) != 0 {
		t.Errorf("snapshots left: %v", left)
	}
	if n := len(w.images(t)); n != 0 {
		t.Errorf("%d images", n)
	}
	w.fs = rootfs.Local()
	if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
		t.Fatalf("again: %+v, %v", r, err)
	}
}

// hookedFS calls a hook before a file is opened.
type hookedFS struct {
	rootfs.FS
	before func(path string)
}

func (h hookedFS) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, rootfs.Info, error) {
	h.before(path)
	return h.FS.Open(ctx, path, offset)
}
