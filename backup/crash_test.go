package backup_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/committer"
	"hbackup/hbase/rpc"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/crash"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// mortal is the cluster as a process sees it: once that is dead it asks for nothing.
type mortal struct {
	*world
	s *crash.Store
}

func (m mortal) alive() error {
	if m.s.Dead() {
		return hbackup.E("call", "master", hbackup.KindInterrupted, crash.ErrDead)
	}
	return nil
}

func (m mortal) Namespaces(ctx context.Context) ([]rpc.Namespace, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.world.Namespaces(ctx)
}

func (m mortal) Snapshot(ctx context.Context, r rpc.SnapshotRequest) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.world.Snapshot(ctx, r)
}

func (m mortal) Snapshots(ctx context.Context) ([]rpc.SnapshotInfo, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.world.Snapshots(ctx)
}

func (m mortal) DeleteSnapshot(ctx context.Context, name string) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.world.DeleteSnapshot(ctx, name)
}

// runAs runs the request in the process that has s.
func (w *world) runAs(s *crash.Store, p committer.Protocol) (backup.Result, error) {
	return backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: mortal{w, s}, FS: w.fs, Root: w.root}, backup.Target{Location: s, Name: "main"},
		backup.Options{Files: 2, Host: "test", Writer: "test", Committer: p})
}

// halfImage reports what nobody may ever see: an image that does not verify, or a
// snapshot of HBase's without its files.
func halfImage(place *mem.Store, files int) error {
	ctx, folder := context.Background(), prefixed.New(place, "prod")
	stored := 0
	for _, err := range folder.List(ctx, catalog.ArchivePrefix(orders), storage.ListOptions{}) {
		if err != nil {
			return err
		}
		stored++
	}
	for o, err := range folder.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		dir, name := path.Split(string(o.Key))
		switch {
		case name == catalog.SnapshotInfoFile:
			data, err := storage.Exists(ctx, folder, storage.Key(dir+catalog.DataManifestFile))
			if err != nil || !data || stored < files {
				return fmt.Errorf("%s is there with %d files and the manifest %v: %v", o.Key, stored, data, err)
			}
		case strings.HasPrefix(dir, "images/"):
			id := hbackup.ImageID(strings.TrimSuffix(name, ".image"))
			r, err := verify.Images(ctx, []catalog.Found{{Place: catalog.Place{Name: "main", Store: folder}, Table: orders, ID: id}}, verify.Options{Concurrency: 2})
			if err != nil || len(r.Faults) > 0 {
				return fmt.Errorf("the image %s does not verify: %+v, %v", id, r.Faults, err)
			}
		}
	}
	return nil
}

// The process dies in each of its calls to the store, in each way. The same request
// then comes to one image, that verifies, and at no step was half of one to be
// seen. What was on its way arrives while the next process is at work.
func TestDyingInEachCallToTheStore(t *testing.T) {
	for _, p := range []committer.Protocol{committer.ProtocolDirect, committer.ProtocolDeferred} {
		clean := newWorld(t)
		counted := crash.New(clean.store.(*mem.Store), crash.Plan{})
		if _, err := clean.runAs(counted, p); err != nil {
			t.Fatal(err)
		}
		steps := counted.Steps()
		for step := 1; step <= steps; step++ {
			plans := []crash.Plan{
				{Step: step, Fate: crash.Undone}, {Step: step, Fate: crash.Torn}, {Step: step, Fate: crash.Done},
				{Step: step, Fate: crash.Late, Lands: 1 + step*7%steps}, {Step: step, Fate: crash.Late, Lands: 1 + step*31%steps},
			}
			if testing.Short() { // one of them
				plans = plans[step%len(plans):][:1]
			}
			for _, plan := range plans {
				t.Run(fmt.Sprint(p, " ", plan.Step, " ", plan.Fate, " ", plan.Lands), func(t *testing.T) {
					t.Parallel()
					dieAndGoOn(t, p, plan)
				})
			}
		}
	}
}

func dieAndGoOn(t *testing.T, p committer.Protocol, plan crash.Plan) {
	w := newWorld(t)
	files := len(w.tables[orders].files)
	s := crash.New(w.store.(*mem.Store), plan)
	s.OnChange(func(place *mem.Store) {
		if err := halfImage(place, files); err != nil {
			t.Error(err)
		}
	})
	r, err := w.runAs(s, p)
	done := err == nil // it died when it gave its lease back, or not at all
	if done && r.State != catalog.StateComplete || !done && !s.Dead() {
		t.Fatalf("dead %v, and got %+v, %v", s.Dead(), r, err)
	}
	next := s.Reopen(crash.Plan{})
	for range 3 { // what comes late may get in the way of one try
		w.advance(2 * time.Minute) // the lease of the dead
		if r, err = w.runAs(next, p); err == nil {
			break
		}
		t.Logf("another try, after: %v", err)
	}
	if err != nil || r.State != catalog.StateComplete || done && !r.AlreadyDone {
		t.Fatalf("the same request: %+v, %v", r, err)
	}
	place := next.Place() // with all that is late
	w.store = place
	if n := len(w.images(t)); n != 1 {
		t.Errorf("%d images", n)
	}
	if err := halfImage(place, files); err != nil {
		t.Error(err)
	}
	if left := place.Uploads(); len(left) > 0 && plan.Fate != crash.Late {
		t.Errorf("uploads are left: %q", left)
	}
	// The snapshot of a process that died after its last look is the next run's to
	// drop, as a run that is done is only confirmed.
	if _, err := w.run("next", w.store); err != nil {
		t.Error(err)
	}
	if left := w.names(); len(left) > 0 {
		t.Errorf("snapshots are left: %v", left)
	}
}

// Nobody on the way of a backup keeps one call open while he makes another: a
// location that allows one at a time is enough.
func TestOneCallAtATimeIsEnough(t *testing.T) {
	for _, p := range []committer.Protocol{committer.ProtocolDirect, committer.ProtocolDeferred} {
		w := newWorld(t)
		s := concurrency.New(w.store, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, id := range []hbackup.RequestID{"one", "two"} { // the second uses what the first has stored
			r, err := backup.Run(ctx, backup.Request{ID: id, Cluster: "prod", Tables: []hbackup.TableName{orders}},
				backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: s, Name: "main"}, backup.Options{Files: 4, Committer: p})
			if err != nil || r.State != catalog.StateComplete {
				t.Fatalf("%s, %s: %+v, %v", p, id, r, err)
			}
			found := []catalog.Found{{Place: catalog.Place{Name: "main", Store: prefixed.New(s, "prod")}, Table: orders, ID: r.Tables[0].Image}}
			if v, err := verify.Images(ctx, found, verify.Options{Concurrency: 4}); err != nil || len(v.Faults) > 0 {
				t.Fatalf("%s, %s: %+v, %v", p, id, v.Faults, err)
			}
		}
	}
}
