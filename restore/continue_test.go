package restore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage/lease"
)

// killAt ends the run at the first call that the test is true of, as kill -9
// would.
func (w *world) killAt(test func(op string) bool) {
	dead := false
	w.g.before = func(_ int, op string) error {
		if dead = dead || test(op); dead {
			return errInjected
		}
		return nil
	}
}

func (w *world) runKilled(t *testing.T, test func(op string) bool) {
	t.Helper()
	w.killAt(test)
	if _, err := w.run(); err == nil {
		t.Fatal("the run was not killed")
	}
	w.g.before = nil
}

// TestContinues: what a killed run has copied is not copied again.
func TestContinues(t *testing.T) {
	w := newWorld(t)
	w.runKilled(t, func(op string) bool { return op == "clone" })
	o, err := Plan(context.Background(), w.request(), w.target(), w.options())
	if err != nil || !o.Continues || o.TableMade {
		t.Fatalf("%+v, %v", o, err)
	}
	res, err := w.run()
	if err != nil || res.CopiedFiles != 0 || res.Files != 7 {
		t.Fatalf("%+v, %v", res, err)
	}
	if !w.c.orders[0].Sent {
		t.Fatal("the master is not told that the order may have been sent before")
	}
	w.checkDone()
}

// TestForeignTableAfterKill: somebody makes a table of that name before the
// restore is run again. It must not be taken for ours.
func TestForeignTableAfterKill(t *testing.T) {
	w := newWorld(t)
	w.runKilled(t, func(op string) bool { return op == "clone" })
	// The same regions, even: a clone of the same snapshot by hand.
	tb := &table{state: rpc.TableEnabled}
	for _, r := range w.image.manifest.Regions {
		if !r.IsMOB() {
			tb.regions = append(tb.regions, rpc.Region{RegionInfo: rpc.RegionInfo{ID: int64(r.ID), StartKey: r.StartKey, EndKey: r.EndKey}})
		}
	}
	w.c.tables[restored] = tb
	if _, err := w.run(); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Fatalf("error %v", err)
	}
	if len(w.c.orders) != 0 {
		t.Fatal("a clone was ordered over a table that exists")
	}
}

// TestTableAppearsDuringCopy: the check before the clone is the last word.
func TestTableAppearsDuringCopy(t *testing.T) {
	w := newWorld(t)
	w.g.before = func(_ int, op string) error {
		if op == "clone" {
			w.c.tables[restored] = &table{state: rpc.TableEnabled, regions: []rpc.Region{{}}}
		}
		return nil
	}
	_, err := w.run()
	if !hbackup.IsKind(err, hbackup.KindRefused) || !strings.Contains(hbackup.HintOf(err), "--as") {
		t.Fatalf("error %v (%s)", err, hbackup.HintOf(err))
	}
	if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 {
		t.Fatalf("left: snapshots %q, %d staged files", s, n)
	}
}

// TestDroppedBetween: the clone of a killed run ended well, the table was
// dropped, and the master still answers "done" under the old nonce.
func TestDroppedBetween(t *testing.T) {
	w := newWorld(t)
	w.runKilled(t, func(op string) bool { return op == "regions" })
	if w.c.tables[restored] == nil {
		t.Fatal("the killed run did not get to the table")
	}
	delete(w.c.tables, restored)
	os.RemoveAll(filepath.Join(w.c.root, "data"))
	w.c.clones = 0
	if _, err := w.run(); err != nil {
		t.Fatalf("%v (%s)", err, hbackup.HintOf(err))
	}
	w.checkDone()
}

// TestCloneAnswerLost: the table was made although the call failed.
func TestCloneAnswerLost(t *testing.T) {
	w := newWorld(t)
	w.c.lost = 1
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
}

// TestCloneOutcomeUnknown: nothing may be removed while the clone may run, and
// the next run goes on.
func TestCloneOutcomeUnknown(t *testing.T) {
	w := newWorld(t)
	w.g.before = func(_ int, op string) error {
		if op == "clone" {
			return hbackup.E("clone", "", hbackup.KindTimeout, errInjected)
		}
		return nil
	}
	_, err := w.run()
	if !hbackup.IsKind(err, hbackup.KindTimeout) || !strings.Contains(hbackup.HintOf(err), `"nightly-1"`) {
		t.Fatalf("error %v (%s)", err, hbackup.HintOf(err))
	}
	if len(w.c.snapshots()) != 1 || w.c.staged() != 6 {
		t.Fatalf("left: snapshots %q, %d staged files", w.c.snapshots(), w.c.staged())
	}
	w.g.before = nil
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
}

// TestCloneFailed: the master's last word is no; nothing stays, and the next run
// is not answered with the old failure.
func TestCloneFailed(t *testing.T) {
	w := newWorld(t)
	failed := &rpc.ProcedureError{ID: 7, Remote: &rpc.RemoteError{Class: "java.io.IOException", Message: "no"}}
	w.g.before = func(_ int, op string) error {
		if op == "clone" {
			return hbackup.E("clone", "", hbackup.KindOther, failed)
		}
		return nil
	}
	if _, err := w.run(); err == nil {
		t.Fatal("no error")
	}
	if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 {
		t.Fatalf("left: snapshots %q, %d staged files", s, n)
	}
	w.g.before = nil
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
}

// TestOtherRestores: a snapshot of a restore that is done is dropped, others are
// not touched, whatever their state.
func TestOtherRestores(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.ID, req.As.Qualifier = "earlier", "orders_q"
	if _, err := Run(context.Background(), req, w.target(), w.options()); err != nil {
		t.Fatal(err)
	}
	done := identityOf("earlier", imageID, "lab", req.As).snapshot()
	twin := identityOf("earlier", imageID, "another", req.As).snapshot() // another cluster's restore of the same request id
	open := identityOf("open", imageID, "lab", req.As).snapshot()
	for _, name := range []string{done, twin, open, "a_snapshot_of_the_user"} {
		if err := os.MkdirAll(snapshot.SnapshotDir(w.c.root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	res, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	left := w.c.snapshots()
	want := []string{"a_snapshot_of_the_user", twin, open}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Fatalf("left %q, want %q", left, want)
	}
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, open) || !strings.Contains(notes, twin) || strings.Contains(notes, "user") {
		t.Fatalf("notes %q", res.Notes)
	}
}

// TestBusy: two processes with one request id; the second finds a lease that is
// renewed.
func TestBusy(t *testing.T) {
	w := newWorld(t)
	l, err := lease.Acquire(context.Background(), w.store, LeaseName("nightly-1"), "somebody", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	opts := w.options()
	opts.wait = func(ctx context.Context, d time.Duration) error { return l.Renew(ctx) }
	_, err = Run(context.Background(), w.request(), w.target(), opts)
	if !hbackup.IsKind(err, hbackup.KindBusy) {
		t.Fatalf("error %v", err)
	}
	if len(w.c.snapshots()) > 0 {
		t.Fatal("the cluster was touched without the lease")
	}
}
