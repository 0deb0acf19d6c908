package backup

import (
	"context"
	"errors"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/lease"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// A machine that slept wakes up with a context that does not know yet that its
// lease is over: what is written then is asked for by the clock.

func sleeper(t *testing.T) *run {
	t.Helper()
	location, ctx := mem.New("sleeper"), context.Background()
	s := prefixed.New(location, "prod")
	marker, err := catalog.EnsureMarker(ctx, location, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	job := catalog.Job{Request: "r", Backup: hbackup.NewBackupID(time.UnixMilli(1796079901123)), Cluster: "prod",
		Tables: []hbackup.TableName{{Namespace: "ns", Qualifier: "a"}, {Namespace: "ns", Qualifier: "b"}}}
	l, err := lease.Acquire(ctx, s, catalog.RunLease(job.Backup), "sleeper", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(ctx); err != nil { // as good as lost
		t.Fatal(err)
	}
	return &run{req: Request{ID: "r", Cluster: "prod", Tables: job.Tables}, opts: Options{}.withDefaults(), location: location, marker: marker, store: s, job: job, lease: l}
}

func TestNoRecordIsWrittenWithoutTheLease(t *testing.T) {
	r, ctx := sleeper(t), context.Background()
	lines := []catalog.TableRun{{Table: r.job.Tables[0], Image: r.job.Backup.Image(0)},
		{Table: r.job.Tables[1], Failure: &catalog.Failure{Kind: hbackup.KindBusy, Message: "the lease is lost"}}}
	if got, err := r.commit(ctx, lines, []error{nil, lease.ErrLost}); !errors.Is(err, lease.ErrLost) {
		t.Errorf("committed %+v, %v", got, err)
	}
	// The other, which has the lease, may still back up the second table.
	if _, err := catalog.ReadRun(ctx, r.store, r.job.Backup); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("the record: %v", err)
	}
}

func TestNothingIsTakenAwayWithoutTheLeaseOrFromACommittedImage(t *testing.T) {
	r, ctx := sleeper(t), context.Background()
	table, id := r.job.Tables[0], r.job.Backup.Image(0)
	if err := r.mayReplace(ctx, table, id); !errors.Is(err, lease.ErrLost) {
		t.Errorf("without the lease: %v", err)
	}
	var err error
	if r.lease, err = lease.Acquire(ctx, r.store, catalog.RunLease(r.job.Backup), "awake", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := r.mayReplace(ctx, table, id); err != nil {
		t.Errorf("with it: %v", err)
	}
	im := &catalog.Image{Header: catalog.Header{ID: id, Backup: r.job.Backup, Cluster: "prod", Table: table}}
	data, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, r.store, catalog.ImageKey(table, id), data, true); err != nil {
		t.Fatal(err)
	}
	if err := r.mayReplace(ctx, table, id); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("of a committed image: %v", err)
	}
}

func TestARunEndsAfterItsSnapshots(t *testing.T) {
	now := time.UnixMilli(1796079901000)
	at := func(d time.Duration) catalog.TableRun { return catalog.TableRun{SnapshotFinished: now.Add(d)} }
	for want, tables := range map[time.Duration][]catalog.TableRun{
		0:                      {at(-time.Minute), {}},
		700 * time.Millisecond: {at(300 * time.Millisecond), at(700 * time.Millisecond), at(time.Hour)}, // the last by a clock that is wrong
	} {
		if got := afterSnapshots(now, tables); !got.Equal(now.Add(want)) {
			t.Errorf("%s, want %s after", got.Sub(now), want)
		}
	}
}
