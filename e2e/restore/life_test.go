package restore

import (
	"context"
	"strings"
	"sync"
	"testing"

	"hbackup/e2e/servers"
)

// TestCleanersNeverPause restores while the cleaners, which keep nothing that is
// not protected, run one pass after the other.
func TestCleanersNeverPause(t *testing.T) {
	x := tool(t)
	id, want := source(t, x, "clean:source")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	passes := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := cluster.RunCleaner(ctx); err == nil {
				passes++
			}
		}
	})
	for _, as := range []string{"clean:r1", "clean:r2", "clean:r3"} {
		x.OK(t, "restore", id, "--table", "clean:source", "--as", as)
		check(t, servers.DiffDumps(want, dump(t, as)))
	}
	stop()
	wg.Wait()
	t.Logf("the cleaners made %d passes", passes)
	if passes < 3 {
		t.Errorf("the cleaners made only %d passes", passes)
	}
	// Restored files vanish by themselves when nobody needs them.
	for _, as := range []string{"clean:r1", "clean:r2", "clean:r3"} {
		check(t, servers.DiffDumps(want, dump(t, as)))
		check(t, cluster.Drop(t.Context(), as))
	}
	check(t, cluster.RefreshSnapshotCache(t.Context()))
	stagesVanish(t)
}

// TestTwoAtOnce restores one image to two tables at a time.
func TestTwoAtOnce(t *testing.T) {
	x := tool(t)
	id, want := source(t, x, "two:source")
	var wg sync.WaitGroup
	for _, as := range []string{"two:r1", "two:r2", "two:r3"} {
		wg.Go(func() {
			if r := x.Run(t.Context(), "restore", id, "--table", "two:source", "--as", as); r.Code != 0 {
				t.Errorf("%s", r)
			}
		})
	}
	wg.Wait()
	for _, as := range []string{"two:r1", "two:r2", "two:r3"} {
		check(t, servers.DiffDumps(want, dump(t, as)))
	}
}

// TestRefusedBeforeAnythingIsWritten asks for what must not be done.
func TestRefusedBeforeAnythingIsWritten(t *testing.T) {
	x := tool(t)
	id, want := source(t, x, "no:source")
	for _, c := range []struct{ as, says string }{
		{"no:source", "exists already"},
		{"nowhere:t", "--create-namespace"},
		{"hbase:acl", "HBase's own"},
	} {
		r := x.Run(t.Context(), "restore", id, "--table", "no:source", "--as", c.as)
		if r.Code == 0 || !strings.Contains(r.Stderr, c.says) || strings.Contains(r.Stderr, "goroutine") {
			t.Errorf("to %s: %s", c.as, r)
		}
	}
	check(t, servers.DiffDumps(want, dump(t, "no:source")))
	if left := snapshots(t); len(left) > 0 {
		t.Errorf("snapshots left: %q", left)
	}
}
