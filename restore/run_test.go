package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/readonly"
)

// world is a location with one image and an empty cluster, both behind a gate.
type world struct {
	t     *testing.T
	image *builder
	store storage.Store
	found catalog.Found
	c     *cluster
	g     *gate
	ahead atomic.Int64 // how far the store's clock was turned, ns
	files int
}

func newWorld(t *testing.T) *world { return newWorldOf(t, ordersImage(t)) }

func newWorldOf(t *testing.T, b *builder) *world {
	w := &world{t: t, image: b, c: newCluster(t), g: &gate{}, files: 1}
	w.store = newStore(t, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) })
	w.found = w.image.store(w.store)
	return w
}

var restored = hbackup.TableName{Namespace: "shop", Qualifier: "orders_r"}

func (w *world) request() Request {
	found := w.found
	found.Place.Store = gatedStore{w.store, w.g}
	return Request{ID: "nightly-1", Image: found, As: restored}
}

func (w *world) target() Target {
	return Target{Name: "lab", Master: gatedMaster{w.c, w.g}, FS: gatedFS{w.c.fs, w.g}, Root: w.c.root}
}

func (w *world) options() Options {
	return Options{Files: w.files, Host: "h", wait: func(ctx context.Context, d time.Duration) error {
		w.ahead.Add(int64(d))
		return context.Cause(ctx)
	}}
}

func (w *world) run() (Result, error) {
	return Run(context.Background(), w.request(), w.target(), w.options())
}

// cleanOften runs the cleaners before calls that depend on what they leave.
func (w *world) cleanOften(_ int, op string) error {
	if op == "clone" || strings.HasPrefix(op, "create ") || strings.HasPrefix(op, "close ") || strings.HasPrefix(op, "put ") {
		w.c.clean()
	}
	return nil
}

// checkDone checks that the table is whole and that nothing else of the restore
// is there.
func (w *world) checkDone() {
	w.t.Helper()
	w.c.clean()
	w.c.checkTable(restored, w.image)
	if left := w.c.snapshots(); len(left) > 0 {
		w.t.Fatalf("snapshots left: %q", left)
	}
	if w.c.clones != 1 {
		w.t.Fatalf("%d clones were made", w.c.clones)
	}
}

func TestRestore(t *testing.T) {
	w := newWorld(t)
	w.files = 4
	// The cleaners run before every call: no file is ever without protection.
	w.g.before = func(int, string) error { w.c.clean(); return nil }
	res, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	w.checkDone()
	if res.AlreadyDone || res.Regions != 4 || res.Files != 7 || res.CopiedFiles != 7 || res.CopiedBytes != w.image.image.Totals.Bytes || res.Bytes != res.CopiedBytes {
		t.Fatalf("result %+v", res)
	}
	again, err := w.run()
	if err != nil || !again.AlreadyDone {
		t.Fatalf("second run: %+v, %v", again, err)
	}
	w.checkDone()
}

// TestOrder checks the order of steps that the cleaners demand, from the calls.
func TestOrder(t *testing.T) {
	w := newWorld(t)
	var order []string
	w.g.before = func(_ int, op string) error {
		switch {
		case strings.HasPrefix(op, "create ") && strings.HasSuffix(op, snapshot.ManifestFile):
			order = append(order, "manifest")
		case strings.HasPrefix(op, "create ") && strings.HasSuffix(op, snapshot.InfoFile):
			order = append(order, "info")
		case strings.HasPrefix(op, "create ") && !slices.Contains(order, "file"):
			order = append(order, "file")
		case op == "clone", op == "delete snapshot":
			order = append(order, op)
		case strings.HasPrefix(op, "put jobs/") && strings.HasSuffix(op, "done.json"):
			order = append(order, "done")
		}
		return nil
	}
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	want := []string{"manifest", "info", "file", "clone", "done", "delete snapshot"}
	if !slices.Equal(order, want) {
		t.Fatalf("order %q, want %q", order, want)
	}
}

// count gives the number of outside calls of an undisturbed run.
func count(t *testing.T) int {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	return w.g.calls
}

// TestKilledAnywhere ends a run at every call it makes to the outside: from then
// on nothing it does has an effect, as after kill -9. The cleaners run, and the
// same request is run again.
func TestKilledAnywhere(t *testing.T) {
	total := count(t)
	for _, hidden := range []bool{false, true} { // whether the last call had its effect
		for k := 1; k <= total; k++ {
			t.Run(fmt.Sprintf("%v/%d", hidden, k), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				last := ""
				w.g.before = func(n int, op string) error {
					if n == k {
						last = op
					}
					if n > k || n == k && !hidden {
						return errInjected
					}
					return nil
				}
				w.g.after = func(n int, op string) error {
					if n >= k {
						return errInjected
					}
					return nil
				}
				_, err := w.run()
				if err == nil && k < total-6 { // the last calls give the lease back
					t.Fatalf("killed at %q and no error", last)
				}
				w.g.before, w.g.after = w.cleanOften, nil
				if _, err := w.run(); err != nil {
					t.Fatalf("killed at %q, then: %v (%s)", last, err, hbackup.HintOf(err))
				}
				w.checkDone()
				if res, err := w.run(); err != nil || !res.AlreadyDone {
					t.Fatalf("killed at %q, third run: %+v, %v", last, res, err)
				}
				w.checkDone()
			})
		}
	}
}

// TestEveryCallFailsOnce lets each call to the outside fail once, before or
// after its effect, with an error that may or may not be repeated.
func TestEveryCallFailsOnce(t *testing.T) {
	total := count(t)
	for _, kind := range []hbackup.Kind{hbackup.KindUnavailable, hbackup.KindOther} {
		for _, hidden := range []bool{false, true} {
			for k := 1; k <= total; k++ {
				t.Run(fmt.Sprintf("%s/%v/%d", kind, hidden, k), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					failing := ""
					fail := func(n int, op string) error {
						if n != k {
							return nil
						}
						failing = op
						return hbackup.E("test", op, kind, errInjected)
					}
					if hidden {
						w.g.after = fail
					} else {
						w.g.before = fail
					}
					res, err := w.run()
					w.c.clean()
					if err == nil {
						w.checkDone()
						if res.Files != 7 {
							t.Fatalf("%q failed: %+v", failing, res)
						}
					} else {
						w.checkLeft(failing, err)
					}
					w.g.before, w.g.after = nil, nil
					if _, err := w.run(); err != nil {
						t.Fatalf("%q failed, then: %v (%s)", failing, err, hbackup.HintOf(err))
					}
					w.checkDone()
				})
			}
		}
	}
}

// checkLeft checks what a failed run has left: nothing, or a whole snapshot that
// the error speaks of.
func (w *world) checkLeft(failing string, err error) {
	w.t.Helper()
	left := w.c.snapshots()
	if len(left) == 0 {
		return
	}
	if !strings.Contains(hbackup.HintOf(err), "run this again") {
		w.t.Fatalf("%q failed: %q is left, and the error does not say so: %v (%s)", failing, left, err, hbackup.HintOf(err))
	}
	if strings.HasPrefix(failing, "remove tree") || failing == "delete snapshot" {
		return
	}
	if _, err := snapshot.Read(context.Background(), w.c.fs, w.c.root, left[0]); err != nil {
		w.t.Fatalf("%q failed: the snapshot that is left is not whole: %v", failing, err)
	}
}

// TestFailureLeavesNothing fails for good in the middle of the copy.
func TestFailureLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.files = 3
	w.g.before = func(_ int, op string) error {
		if strings.HasPrefix(op, "read archive/") && strings.HasSuffix(op, hexName(4)) {
			return hbackup.E("read", op, hbackup.KindDenied, errInjected)
		}
		return nil
	}
	_, err := w.run()
	if !hbackup.IsKind(err, hbackup.KindDenied) || !errors.Is(err, errInjected) {
		t.Fatalf("error %v", err)
	}
	if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 {
		t.Fatalf("left: snapshots %q, %d staged files", s, n)
	}
}

func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	w.g.after = func(_ int, op string) error {
		if strings.HasPrefix(op, "create ") && strings.Contains(op, "/hbk/") {
			cancel()
		}
		return nil
	}
	_, err := Run(ctx, w.request(), w.target(), w.options())
	if !hbackup.IsKind(err, hbackup.KindInterrupted) {
		t.Fatalf("error %v, kind %s", err, hbackup.KindOf(err))
	}
	if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 {
		t.Fatalf("left: snapshots %q, %d staged files", s, n)
	}
	w.g.after = nil
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
}

func TestDamagedInLocation(t *testing.T) {
	for name, damage := range map[string]func(*world, storage.Key){
		"flipped": func(w *world, k storage.Key) {
			data := slices.Clone(w.image.bytes[k])
			data[len(data)/2] ^= 1
			storage.PutBytes(context.Background(), w.store, k, data, false)
		},
		"shortened": func(w *world, k storage.Key) {
			storage.PutBytes(context.Background(), w.store, k, w.image.bytes[k][1:], false)
		},
		"removed": func(w *world, k storage.Key) { w.store.Delete(context.Background(), k) },
	} {
		for i := range ordersImage(t).image.Files {
			f := ordersImage(t).image.Files[i]
			if f.Size == 0 && name != "removed" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				w := newWorld(t)
				damage(w, f.Key())
				_, err := w.run()
				if !hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete) || !strings.Contains(err.Error(), string(f.Key())) {
					t.Fatalf("error %v, kind %s", err, hbackup.KindOf(err))
				}
				if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 || len(w.c.tables) > 0 {
					t.Fatalf("left: snapshots %q, %d staged files, tables %v", s, n, w.c.tables)
				}
			})
		}
	}
}

func TestReadOnlyLocation(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Image.Place.Store = readonly.New(w.store)
	res, err := Run(context.Background(), req, w.target(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	w.checkDone()
	if !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "takes no writes") }) {
		t.Fatalf("notes %q", res.Notes)
	}
	// The second run cannot know, and must not touch the table.
	_, err = Run(context.Background(), req, w.target(), w.options())
	if !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Fatalf("error %v", err)
	}
	w.checkDone()
}

// TestTornFileOfKilledRun leaves files of the right attempt with wrong content.
func TestTornFileOfKilledRun(t *testing.T) {
	w := newWorld(t)
	w.g.before = func(_ int, op string) error {
		if op == "clone" {
			return errInjected
		}
		return nil
	}
	if _, err := w.run(); err == nil {
		t.Fatal("no error")
	}
	damaged := 0
	filepath.WalkDir(filepath.Join(w.c.root, "archive/data/hbk"), func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil || len(data) == 0 {
			return err
		}
		if damaged%2 == 0 {
			data[0] ^= 1
		} else {
			data = data[:len(data)-1]
		}
		damaged++
		return os.WriteFile(p, data, 0o644)
	})
	if damaged == 0 {
		t.Fatal("the run left nothing to be continued")
	}
	w.g.before = nil
	res, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	w.checkDone()
	if res.CopiedFiles != damaged {
		t.Fatalf("%d files copied, %d were damaged", res.CopiedFiles, damaged)
	}
}
