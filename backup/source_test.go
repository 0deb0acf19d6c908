package backup_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
	"hbackup/storage/mem"
)

func (w *world) runFrom(id, name string) (backup.Result, error) {
	return backup.Run(context.Background(), backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", FromSnapshot: name},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Files: 2, Host: "test", Writer: "test"})
}

// A backup is made of a snapshot that somebody has taken: of its moment, even when the
// table is another one by now, or gone; and the snapshot stays.
func TestBackupOfASnapshotThatIsThere(t *testing.T) {
	w := newWorld(t)
	if err := w.Snapshot(t.Context(), rpc.SnapshotRequest{Name: "theirs", Table: orders}); err != nil {
		t.Fatal(err)
	}
	files := len(w.tables[orders].files)
	w.addFile(t, orders, "2.6-none.hfile")
	for _, id := range []string{"one", "two"} {
		r, err := w.runFrom(id, "theirs")
		if err != nil || r.State != catalog.StateComplete || len(r.Tables) != 1 || r.Tables[0].Totals.Files != files {
			t.Fatalf("%+v, %v", r, err)
		}
		h, err := catalog.ReadHeader(t.Context(), w.folder(), orders, r.Tables[0].Image)
		if err != nil || h.SourceSnapshot != "theirs" {
			t.Errorf("%+v, %v", h, err)
		}
		if again, err := w.runFrom(id, "theirs"); err != nil || !again.AlreadyDone || again.ID != r.ID {
			t.Errorf("once more: %+v, %v", again, err)
		}
		if names := w.names(); !slices.Equal(names, []string{"theirs"}) {
			t.Errorf("snapshots: %v", names)
		}
		saved := w.tables[orders]
		delete(w.tables, orders) // dropped; its files stay for the snapshot
		defer func() { w.tables[orders] = saved }()
	}
	if len(w.verified(t)) != 2 {
		t.Error("not two images")
	}
}

// What cannot be backed up like that is refused before anything is written, and a
// request id stands for one snapshot.
func TestSnapshotsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]struct {
		kind hbackup.Kind
		word string
	}{
		"none": {hbackup.KindNotFound, "does not list it"},
		"hbackup.prod.20261130T230501.123Z-7f3k2m9q4x.0003": {hbackup.KindUsage, "hbackup's own"},
	} {
		_, err := w.runFrom("r", name)
		if !hbackup.IsKind(err, want.kind) || !strings.Contains(err.Error(), want.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.keys(t); n != 0 {
		t.Errorf("%d objects were written", n)
	}
	for _, name := range []string{"a", "b"} {
		if err := w.Snapshot(t.Context(), rpc.SnapshotRequest{Name: name, Table: orders}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.runFrom("r", "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.runFrom("r", "b"); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("another snapshot under the same id: %v", err)
	}
	if _, err := w.run("r", w.store); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("a table under the same id: %v", err)
	}
	// Deleted while it is copied: nothing is committed.
	failing := &deleting{world: w, name: "b"}
	_, err := backup.Run(t.Context(), backup.Request{ID: "gone", Cluster: "prod", FromSnapshot: "b"},
		backup.Source{Master: failing, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{})
	if !hbackup.IsKind(err, hbackup.KindIncomplete) || len(w.verified(t)) != 1 {
		t.Errorf("deleted during the copy: %v", err)
	}
}

// deleting is a master on which somebody deletes a snapshot once it has been listed
// for the second time: the first is the look before the copy.
type deleting struct {
	*world
	name   string
	listed int
}

func (d *deleting) Snapshots(ctx context.Context) ([]rpc.SnapshotInfo, error) {
	if d.listed++; d.listed == 3 { // the second is for leftovers
		d.world.mu.Lock()
		delete(d.world.snapshots, d.name)
		d.world.mu.Unlock()
	}
	return d.world.Snapshots(ctx)
}

// Never more snapshots are taken at a time than was said, however many tables are
// worked on.
func TestSnapshotsAtATime(t *testing.T) {
	w := newWorld(t)
	tables := []hbackup.TableName{orders}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		tables = append(tables, hbackup.TableName{Namespace: "ns", Qualifier: name})
		w.add(t, tables[len(tables)-1], "2.6-none.hfile")
	}
	synctest.Test(t, func(t *testing.T) {
		busy := &busyMaster{world: w, leave: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			_, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: tables},
				backup.Source{Master: busy, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"},
				backup.Options{Tables: 7, Snapshots: 3})
			done <- err
		}()
		for left := len(tables); left > 0; left-- {
			synctest.Wait() // until nobody can do anything more
			if n := busy.inside.Load(); int(n) != min(3, left) {
				t.Errorf("%d snapshots are being taken, of %d that are left", n, left)
			}
			busy.leave <- struct{}{}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

type busyMaster struct {
	*world
	inside atomic.Int32
	leave  chan struct{}
}

func (b *busyMaster) Snapshot(ctx context.Context, r rpc.SnapshotRequest) error {
	b.inside.Add(1)
	<-b.leave
	b.inside.Add(-1)
	return b.world.Snapshot(ctx, r)
}

// A run of a snapshot dies when its image is committed, and somebody deletes the
// snapshot: the same request comes to its end all the same. One that had no image yet
// says what is missing.
func TestASnapshotThatIsDeletedBeforeTheRequestGoesOn(t *testing.T) {
	for _, committed := range []bool{true, false} {
		w := newWorld(t)
		if err := w.Snapshot(t.Context(), rpc.SnapshotRequest{Name: "theirs", Table: orders}); err != nil {
			t.Fatal(err)
		}
		part := "backups/" // the run's record
		if !committed {
			part = "images/"
		}
		faulty := newDying(w.store.(*mem.Store), nth(1, "put", part))
		if !w.killFrom(t, faulty, "r", "theirs") {
			t.Fatal("it did not die")
		}
		w.drop("theirs")
		w.advance(time.Minute) // the lease of the dead
		r, err := w.runFrom("r", "theirs")
		if committed && (err != nil || r.State != catalog.StateComplete || len(w.verified(t)) != 1) {
			t.Errorf("with an image: %+v, %v", r, err)
		}
		if !committed && !hbackup.IsKind(err, hbackup.KindIncomplete) {
			t.Errorf("without one: %+v, %v", r, err)
		}
	}
}
