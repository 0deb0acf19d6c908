package backup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/lease"
)

// runFor runs a request over tables that waits so long for those of others.
func (w *world) runFor(id string, patience time.Duration, tables ...hbackup.TableName) (backup.Result, error) {
	return backup.Run(context.Background(), backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Tables: tables},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"},
		backup.Options{Files: 2, Host: "test", TableWait: patience, Reporter: w.told})
}

// stages are what a reporter was told of tables.
type stages struct {
	mu sync.Mutex
	of map[hbackup.TableName][]string
}

func (s *stages) Stage(t hbackup.TableName, stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[hbackup.TableName][]string{}
	}
	s.of[t] = append(s.of[t], stage)
}

func (*stages) Expect(hbackup.TableName, int, int64)     {}
func (*stages) Done(hbackup.TableName, int, int64, bool) {}

func (w *world) lease(t *testing.T, name string) lease.Holder {
	t.Helper()
	h, found, err := lease.Read(context.Background(), w.folder(), name)
	if err != nil || !found {
		t.Fatalf("the lease %s: found %v, %v", name, found, err)
	}
	return h
}

// A table that another run works on fails alone, and says who has it. The next run
// backs it up.
func TestATableOfAnotherRunIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.add(t, items, "2.6-none.hfile")
	if _, err := catalog.EnsureMarker(t.Context(), w.store, "test", false); err != nil {
		t.Fatal(err)
	}
	other, err := lease.Acquire(t.Context(), w.folder(), catalog.TableLease(orders), "otherhost, request weekly", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.runFor("r", time.Millisecond, orders, items)
	if err != nil || r.State != catalog.StatePartial {
		t.Fatalf("%+v, %v", r, err)
	}
	if told := slices.Compact(w.told.of[orders]); !slices.Equal(told, []string{"waiting", "failed"}) {
		t.Errorf("told of the table that another has: %q", told)
	}
	f := r.Tables[0].Failure
	if f == nil || f.Kind != hbackup.KindBusy || !strings.Contains(f.Message, "otherhost, request weekly") || !strings.Contains(f.Hint, "table_wait") {
		t.Errorf("the table that another has: %+v", f)
	}
	if r.Tables[1].Image == "" {
		t.Errorf("the other table: %+v", r.Tables[1].Failure)
	}
	if left := w.names(); len(left) > 0 {
		t.Errorf("snapshots are left: %v", left)
	}
	if _, err := w.runFor("alone", time.Millisecond, orders); !hbackup.IsKind(err, hbackup.KindBusy) {
		t.Errorf("with no other table: %v", err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := w.runFor("next", time.Millisecond, orders, items); err != nil || r.State != catalog.StateComplete {
		t.Fatalf("the next run: %+v, %v", r, err)
	}
}

// A table that another run has comes last, and is taken once it is free.
func TestATableOfAnotherRunIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, items, "2.6-none.hfile")
	if _, err := catalog.EnsureMarker(t.Context(), w.store, "test", false); err != nil {
		t.Fatal(err)
	}
	other, err := lease.Acquire(t.Context(), w.folder(), catalog.TableLease(orders), "other", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/items/") {
			if err := other.Release(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}}
	r, err := w.runFor("r", time.Hour, orders, items)
	if err != nil || r.State != catalog.StateComplete {
		t.Fatalf("%+v, %v", r, err)
	}
	if told := w.told.of[orders]; slices.Contains(told, "failed") || told[len(told)-1] != "done" {
		t.Errorf("told of the table that is waited for: %q", told)
	}
}

// Two runs whose tables overlap, at the same time: both end, nothing is done twice,
// and what is committed says under which generation.
func TestTwoRunsOverTheSameTables(t *testing.T) {
	w := newWorld(t)
	w.add(t, items, "2.6-none.hfile")
	tables := []hbackup.TableName{orders, items}
	type outcome struct {
		backup.Result
		err error
	}
	ends := make(chan outcome, 2)
	for _, id := range []string{"one", "two"} {
		go func() {
			r, err := w.runFor(id, time.Hour, tables...)
			ends <- outcome{r, err}
		}()
	}
	copied := 0
	var images []*catalog.Image
	for range 2 {
		o := <-ends
		if o.err != nil || o.State != catalog.StateComplete {
			t.Fatalf("%+v, %v", o.Result, o.err)
		}
		if o.Fence <= 0 || o.Fence >= w.lease(t, catalog.RunLease(o.ID)).Generation {
			t.Errorf("the run was recorded under generation %d", o.Fence)
		}
		for _, line := range o.Tables {
			copied += line.CopiedFiles
			im, err := catalog.ReadImage(t.Context(), w.folder(), line.Table, line.Image)
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, im)
		}
	}
	if copied != 4 {
		t.Errorf("%d files were copied of 4", copied)
	}
	for _, a := range images {
		if last := w.lease(t, catalog.TableLease(a.Table)); !last.Released || a.Fence <= 0 || a.Fence >= last.Generation {
			t.Errorf("an image of %s was made under generation %d; the last is %+v", a.Table, a.Fence, last)
		}
		for _, b := range images {
			if a != b && a.Table == b.Table && a.Fence == b.Fence {
				t.Errorf("two images of %s were made under generation %d", a.Table, a.Fence)
			}
		}
	}
}

// The table's lease is taken away while files are copied: the work on the table
// ends, and nothing of it is committed.
func TestATableWhoseLeaseIsLostGetsNoImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, items, "2.6-none.hfile")
	w.fs = &stealingFS{FS: w.fs, steal: func() {
		w.advance(time.Minute)
		// The run's lease is renewed in time, as if only the table's was not.
		if _, err := lease.Acquire(context.Background(), w.folder(), catalog.TableLease(orders), "the other", time.Hour); err != nil {
			t.Error(err)
		}
	}}
	r, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders, items}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"},
		backup.Options{Files: 2, Tables: 1, LeaseTTL: lease.MinTTL, TableWait: time.Millisecond})
	if err != nil || r.State != catalog.StatePartial {
		t.Fatalf("%+v, %v", r, err)
	}
	if f := r.Tables[0].Failure; f == nil || f.Kind != hbackup.KindBusy || !strings.Contains(f.Message, "the other") {
		t.Errorf("the table: %+v", f)
	}
	if there, err := storage.Exists(context.Background(), w.folder(), catalog.ImageKey(orders, r.ID.Image(0))); there || err != nil {
		t.Errorf("it has an image: %v, %v", there, err)
	}
	if left := w.names(); len(left) > 0 {
		t.Errorf("snapshots are left: %v", left)
	}
}

// A machine that was suspended thinks that it has its lease. The store knows better.
func TestTheStoreIsAskedBeforeACommit(t *testing.T) {
	w := newWorld(t)
	w.fs = hookedFS{w.fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") && strings.HasSuffix(path, w.tables[orders].files[2]) {
			w.advance(time.Hour) // in a moment of the machine's own time
			if _, err := lease.Acquire(context.Background(), w.folder(), catalog.TableLease(orders), "the other", time.Hour); err != nil {
				t.Error(err)
			}
		}
	}}
	if r, err := w.runFor("r", time.Millisecond, orders); !errors.Is(err, lease.ErrLost) {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := len(w.images(t)); n != 0 {
		t.Errorf("%d images", n)
	}
}
