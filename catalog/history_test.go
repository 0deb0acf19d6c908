package catalog_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/lease"
	"hbackup/storage/mem"
)

var orders = hbackup.TableName{Namespace: "ns", Qualifier: "orders"}

func job(id hbackup.BackupID, request string) catalog.Job {
	return catalog.Job{Request: hbackup.RequestID(request), Verb: "backup", Backup: id, Cluster: "prod", Tables: []hbackup.TableName{orders}}
}

func ids(n int) []hbackup.BackupID {
	out := make([]hbackup.BackupID, n)
	for i := range out {
		out[i] = hbackup.NewBackupID(time.UnixMilli(1796079901123 + int64(i)))
	}
	return out
}

func TestHistoryIsOneOverAllLocationsInOrderOfTime(t *testing.T) {
	ctx := context.Background()
	old, target := mem.New("old"), mem.New("target")
	id := ids(4)
	for i, s := range []storage.Store{target, old, target, old} {
		if _, err := catalog.CommitRun(ctx, s, catalog.Run{ID: id[i], State: catalog.StateComplete}); err != nil {
			t.Fatal(err)
		}
	}
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "target", Store: target}, {Name: "old", Store: old}})
	if len(h.Unreachable) != 0 || len(h.Entries) != 4 {
		t.Fatalf("got %+v", h)
	}
	for i, e := range h.Entries {
		if e.ID != id[i] || e.Place != []string{"target", "old", "target", "old"}[i] {
			t.Errorf("entry %d is %s in %s", i, e.ID, e.Place)
		}
	}
}

func TestARunIsRunningWhileItsLeaseIsHeldAndFailedAfter(t *testing.T) {
	ctx := context.Background()
	now := time.UnixMilli(1796079901123)
	s := mem.New("leases", mem.WithClock(func() time.Time { return now }))
	id := ids(2)
	for i, request := range []string{"alive", "dead"} {
		if _, _, err := catalog.CreateJob(ctx, s, job(id[i], request)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lease.Acquire(ctx, s, catalog.RunLease(id[1]), "host", time.Minute); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := lease.Acquire(ctx, s, catalog.RunLease(id[0]), "host", time.Minute); err != nil {
		t.Fatal(err)
	}
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "target", Store: s}})
	if len(h.Entries) != 2 || h.Entries[0].State != catalog.StateRunning || h.Entries[1].State != catalog.StateFailed {
		t.Fatalf("got %+v", h)
	}
	for i, want := range []bool{false, true} {
		if dead, err := catalog.Dead(ctx, s, id[i]); err != nil || dead != want {
			t.Errorf("run %d: dead is %v (%v)", i, dead, err)
		}
	}
	if dead, err := catalog.Dead(ctx, s, "20261130T230501.123Z-0000000000"); err != nil || dead {
		t.Errorf("a run that is not known here counts as dead (%v)", err)
	}
}

func TestALocationThatFailsHidesNothingOfTheOthers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	good := mem.New("good")
	id := ids(1)
	if _, err := catalog.CommitRun(ctx, good, catalog.Run{ID: id[0], State: catalog.StateComplete}); err != nil {
		t.Fatal(err)
	}
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "bad", Store: unreachable{mem.New("bad")}}, {Name: "good", Store: good}})
	if len(h.Entries) != 1 || h.Unreachable["bad"] == nil || len(h.Unreachable) != 1 {
		t.Fatalf("got %+v", h)
	}
	cancel()
}

type unreachable struct{ *mem.Store }

func (u unreachable) List(context.Context, string, storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		yield(storage.Object{}, hbackup.E("list", "bad", hbackup.KindUnavailable, errors.New("no route")))
	}
}

func TestARequestIDStandsForOneThing(t *testing.T) {
	ctx, s, id := context.Background(), mem.New("jobs"), ids(2)
	first, existed, err := catalog.CreateJob(ctx, s, job(id[0], "nightly"))
	if err != nil || existed {
		t.Fatal(existed, err)
	}
	again, existed, err := catalog.CreateJob(ctx, s, job(id[1], "nightly"))
	if err != nil || !existed || again.Backup != first.Backup {
		t.Fatalf("the same request got run %s instead of %s (%v)", again.Backup, first.Backup, err)
	}
	other := job(id[1], "nightly")
	other.Tables = append(other.Tables, hbackup.TableName{Namespace: "ns", Qualifier: "more"})
	if _, _, err := catalog.CreateJob(ctx, s, other); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Fatalf("another request under the same id: %v", err)
	}
}

func TestTheFirstRecordOfARunCounts(t *testing.T) {
	ctx, s, id := context.Background(), mem.New("runs"), ids(1)
	if _, err := catalog.CommitRun(ctx, s, catalog.Run{ID: id[0], State: catalog.StateComplete, Host: "a"}); err != nil {
		t.Fatal(err)
	}
	got, err := catalog.CommitRun(ctx, s, catalog.Run{ID: id[0], State: catalog.StatePartial, Host: "b"})
	if err != nil || got.Host != "a" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// The listing of the records and the look at the jobs are two moments.
func TestARunThatIsCommittedMeanwhileHasNotFailed(t *testing.T) {
	ctx, s, id := context.Background(), mem.New("meanwhile"), ids(1)
	if _, _, err := catalog.CreateJob(ctx, s, job(id[0], "nightly")); err != nil {
		t.Fatal(err)
	}
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "target", Store: onList{s, "jobs/", func() {
		if _, err := catalog.CommitRun(ctx, s, catalog.Run{ID: id[0], State: catalog.StateComplete}); err != nil {
			t.Error(err)
		}
	}}}})
	if len(h.Entries) != 1 || h.Entries[0].State != catalog.StateComplete || len(h.Unreachable) != 0 {
		t.Fatalf("got %+v", h)
	}
}

// onList lets something happen right before a prefix is listed.
type onList struct {
	*mem.Store
	prefix string
	do     func()
}

func (o onList) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if prefix == o.prefix {
		o.do()
	}
	return o.Store.List(ctx, prefix, opts)
}

func TestADamagedRequestIsSaidAndHidesNoOther(t *testing.T) {
	ctx, s, id := context.Background(), mem.New("damaged"), ids(2)
	if _, err := storage.PutBytes(ctx, s, catalog.JobKey("a"), []byte("{"), true); err != nil {
		t.Fatal(err)
	}
	for i, request := range []string{"b", "c"} {
		if _, _, err := catalog.CreateJob(ctx, s, job(id[i], request)); err != nil {
			t.Fatal(err)
		}
	}
	// Nor does a lease that cannot be read.
	if _, err := storage.PutBytes(ctx, s, storage.Key("leases/"+catalog.RunLease(id[0])+"/00000000000000000001"), []byte("{"), true); err != nil {
		t.Fatal(err)
	}
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "target", Store: s}})
	if !hbackup.IsKind(h.Unreachable["target"], hbackup.KindCorrupt) || len(h.Entries) != 2 {
		t.Fatalf("got %+v", h)
	}
	if first, second := h.Entries[0], h.Entries[1]; !hbackup.IsKind(first.Unreadable, hbackup.KindCorrupt) || second.Unreadable != nil || second.Request != "c" {
		t.Errorf("got %+v and %+v", first, second)
	}
}

// A run that died after its first table has an image that is good without a record.
func TestImagesOfARunWithoutARecord(t *testing.T) {
	ctx, s, id := context.Background(), mem.New("recordless"), ids(1)
	customers := hbackup.TableName{Namespace: "ns", Qualifier: "customers"}
	broken := hbackup.TableName{Namespace: "ns", Qualifier: "broken"}
	im := &catalog.Image{Header: catalog.Header{ID: id[0].Image(1), Backup: id[0], Cluster: "prod", Table: customers, Totals: catalog.Totals{Regions: 7}}}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, s, catalog.ImageKey(customers, im.ID), b, true); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, s, catalog.ImageKey(broken, id[0].Image(2)), b[:20], true); err != nil {
		t.Fatal(err)
	}
	r := catalog.Run{ID: id[0], State: catalog.StateFailed, Tables: []catalog.TableRun{{Table: orders}, {Table: customers}, {Table: broken}}}
	if err := catalog.AddImages(ctx, s, &r); err != nil {
		t.Fatal(err)
	}
	if r.Tables[0].Image != "" || r.Tables[1].Image != im.ID || r.Tables[1].Totals.Regions != 7 {
		t.Errorf("got %+v", r.Tables)
	}
	// One that cannot be read is there for verify to report.
	if r.Tables[2].Image != id[0].Image(2) {
		t.Errorf("got %+v", r.Tables[2])
	}
}
