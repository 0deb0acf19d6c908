package restore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup/hbase/snapshot"
	"hbackup/storage/lease"
)

// A machine that slept wakes up when another process has gone on with its restore:
// what lies on the cluster is the other's now.
func TestNothingIsRemovedWithoutTheLease(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.runKilled(t, func(op string) bool {
		return strings.HasPrefix(op, "create ") && strings.HasSuffix(op, snapshot.InfoFile)
	})
	w.ahead.Add(int64(5 * time.Minute))
	r, err := newRun(w.request(), w.target(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.survey(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := r.look(ctx)
	if err != nil || !s.litter {
		t.Fatalf("%+v, %v", s, err)
	}
	if r.lease, err = lease.Acquire(ctx, w.store, LeaseName("nightly-1"), "sleeper", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := r.lease.Release(ctx); err != nil { // as good as lost
		t.Fatal(err)
	}
	if err := r.place(ctx, s); !errors.Is(err, lease.ErrLost) || len(w.c.snapshots()) != 1 {
		t.Errorf("the snapshot: %v; on the cluster: %q", err, w.c.snapshots())
	}
	for k, err := range s.plan.tasks {
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(w.c.root, k.dir, k.name)
		w.place(at, []byte("the other is writing"))
		if _, err := r.putOnce(ctx, k, true); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%s: %v", at, err)
		}
		if b, err := os.ReadFile(at); err != nil || string(b) != "the other is writing" {
			t.Errorf("%s holds %q (%v)", at, b, err)
		}
	}
}
