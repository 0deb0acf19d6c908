package rpc

import (
	"errors"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rpc"
)

func asError[T any](err error, target *T) bool { return errors.As(err, target) }

func testSnapshot(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t, "r00050")
	w.rows(t, table, 100, "v")
	name := "s_" + table.Qualifier
	must(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: name, Table: table, TTL: time.Hour}))
	s, err := w.FindSnapshot(ctx, name)
	must(t, err)
	if s.Table != table || s.TTL != time.Hour || s.Type != "FLUSH" || time.Since(s.Created).Abs() > 10*time.Minute {
		t.Fatalf("snapshot %+v", s)
	}
	wantKind(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: name, Table: table}), hbackup.KindExists)
	must(t, w.DeleteSnapshot(ctx, name))
	must(t, w.DeleteSnapshot(ctx, name))
	_, err = w.FindSnapshot(ctx, name)
	wantKind(t, err, hbackup.KindNotFound)
}

func testSnapshotRefusals(t *testing.T, w *world) {
	ctx := t.Context()
	gone := hbackup.TableName{Namespace: "default", Qualifier: "no_such_table"}
	wantKind(t, w.Snapshot(soon(t), rpc.SnapshotRequest{Name: "s_none", Table: gone}), hbackup.KindNotFound)
	meta := hbackup.TableName{Namespace: "hbase", Qualifier: "meta"}
	wantKind(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: "s_meta", Table: meta}), hbackup.KindRefused)
	table := w.newTable(t)
	for _, bad := range []string{"", "a/b", ".a", "-a", "a b", "ä", "a:b"} {
		wantKind(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: bad, Table: table}), hbackup.KindUsage)
		wantKind(t, w.DeleteSnapshot(ctx, bad), hbackup.KindUsage)
	}
}

func testSnapshotDisabled(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t)
	w.rows(t, table, 5, "v")
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	name := "s_" + table.Qualifier
	must(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: name, Table: table}))
	s, err := w.FindSnapshot(ctx, name)
	must(t, err)
	want := "DISABLED"
	if w.version == servers.HBase30 { // this alpha stores the type that was asked for
		want = "FLUSH"
	}
	if s.Type != want {
		t.Fatalf("type %s", s.Type)
	}
	clone := hbackup.TableName{Namespace: "default", Qualifier: table.Qualifier + "_clone"}
	must(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: name, Target: clone}))
	if n := len(w.read(t, rpc.ScanRequest{Table: clone})); n != 5 {
		t.Fatalf("%d rows in the clone", n)
	}
	must(t, w.EnableTable(ctx, table, rpc.Nonce{}))
	must(t, w.DeleteSnapshot(ctx, name))
}

// testSnapshotsAtOnce: whichever flow the servers use, all callers get theirs.
func testSnapshotsAtOnce(t *testing.T, w *world) {
	table := w.newTable(t)
	w.rows(t, table, 50, "v")
	names := []string{"once_a", "once_b", "once_c"}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if err := w.Snapshot(t.Context(), rpc.SnapshotRequest{Name: name, Table: table}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		_, err := w.FindSnapshot(t.Context(), name)
		must(t, err)
		must(t, w.DeleteSnapshot(t.Context(), name))
	}
	// The same nonce again is the same snapshot, where the server has procedures.
	again := rpc.SnapshotRequest{Name: "once_n", Table: table, Nonce: rpc.NewNonce()}
	must(t, w.Snapshot(t.Context(), again))
	if err := w.Snapshot(t.Context(), again); w.version == servers.HBase24 || w.version == servers.HBase25 {
		wantKind(t, err, hbackup.KindExists)
	} else {
		must(t, err)
	}
	must(t, w.DeleteSnapshot(t.Context(), "once_n"))
}

func testClone(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t, "r00050")
	w.rows(t, table, 100, "v")
	snap := "s_" + table.Qualifier
	must(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: snap, Table: table}))
	clone := hbackup.TableName{Namespace: "default", Qualifier: table.Qualifier + "_clone"}
	must(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: clone}))
	if n := len(w.read(t, rpc.ScanRequest{Table: clone})); n != 100 {
		t.Fatalf("%d rows in the clone", n)
	}
	wantKind(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: clone}), hbackup.KindExists)
	elsewhere := hbackup.TableName{Namespace: "nowhere", Qualifier: "t"}
	wantKind(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: elsewhere}), hbackup.KindNotFound)
	wantKind(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: "no_such_snapshot", Target: elsewhere}), hbackup.KindNotFound)

	// The procedure fails after it was accepted: finished is not success.
	bad := rpc.CloneRequest{Snapshot: snap, Target: hbackup.TableName{Namespace: "default", Qualifier: table.Qualifier + "_bad"}, StoreFileTracker: "NOPE"}
	err := w.Clone(ctx, bad)
	if w.version == servers.HBase24 {
		wantKind(t, err, hbackup.KindUnsupported)
	} else if err == nil {
		t.Fatal("a clone with a nonsense store file tracker succeeded")
	} else {
		t.Log(err)
	}
	if w.version != servers.HBase24 {
		tracked := hbackup.TableName{Namespace: "default", Qualifier: table.Qualifier + "_file"}
		must(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: tracked, StoreFileTracker: "FILE"}))
		d, err := w.Table(ctx, tracked)
		must(t, err)
		if d.Attribute("hbase.store.file-tracker.impl") != "FILE" {
			t.Fatalf("tracker %q", d.Attribute("hbase.store.file-tracker.impl"))
		}
	}
	must(t, w.DeleteSnapshot(ctx, snap))
}

// testRestoreTrap: RestoreSnapshot for another table that exists would rewind
// the snapshot's own table.
func testRestoreTrap(t *testing.T, w *world) {
	ctx := t.Context()
	table, other := w.newTable(t), w.newTable(t)
	w.rows(t, table, 10, "old")
	snap := "s_" + table.Qualifier
	must(t, w.Snapshot(ctx, rpc.SnapshotRequest{Name: snap, Table: table}))
	cells := []rpc.Cell{{Row: []byte("r00000"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 2000, Type: rpc.CellPut, Value: []byte("new")}}
	must(t, w.Put(ctx, table, cells))
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))

	// Clone onto the other table: never sent, as a first request or a repeated one.
	wantKind(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: other}), hbackup.KindExists)
	wantKind(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: other, Nonce: rpc.NewNonce(), Sent: true}), hbackup.KindConflict)
	// Restore of the other table from this snapshot: refused.
	s, err := w.FindSnapshot(ctx, snap)
	must(t, err)
	forged := s
	forged.Table = other
	wantKind(t, w.Restore(ctx, rpc.RestoreRequest{Snapshot: forged}), hbackup.KindRefused)

	must(t, w.EnableTable(ctx, table, rpc.Nonce{}))
	if got := w.read(t, rpc.ScanRequest{Table: table})[0]; got != "r00000=new" {
		t.Fatalf("the table was rewound: %s", got)
	}
	wantKind(t, w.Restore(ctx, rpc.RestoreRequest{Snapshot: s}), hbackup.KindConflict)

	// A repeated clone whose first send made the target is the same procedure.
	clone := hbackup.TableName{Namespace: "default", Qualifier: table.Qualifier + "_again"}
	request := rpc.CloneRequest{Snapshot: snap, Target: clone, Nonce: rpc.NewNonce()}
	must(t, w.Clone(ctx, request))
	wantKind(t, w.Clone(ctx, request), hbackup.KindExists)
	request.Sent = true
	must(t, w.Clone(ctx, request))
	// With a nonce that the master does not know it must not pass for done.
	request.Nonce = rpc.NewNonce()
	wantKind(t, w.Clone(ctx, request), hbackup.KindExists)

	// And the real restore rewinds.
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	must(t, w.Restore(ctx, rpc.RestoreRequest{Snapshot: s}))
	if state, err := w.TableState(ctx, table); err != nil || state != rpc.TableDisabled {
		t.Fatalf("state %v, %v", state, err)
	}
	must(t, w.EnableTable(ctx, table, rpc.Nonce{}))
	if got := w.read(t, rpc.ScanRequest{Table: table})[0]; got != "r00000=old" {
		t.Fatalf("not rewound: %s", got)
	}
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	must(t, w.DeleteTable(ctx, table, rpc.Nonce{}))
	wantKind(t, w.Restore(ctx, rpc.RestoreRequest{Snapshot: s}), hbackup.KindNotFound)
	// A dropped table comes back under its own name by a clone.
	must(t, w.Clone(ctx, rpc.CloneRequest{Snapshot: snap, Target: table}))
	must(t, w.DeleteSnapshot(ctx, snap))
}
