package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/internal/failpoint"
	"hbackup/restore"
)

// source makes a table of several regions, families and files and backs it up.
func source(t *testing.T, x *cli.Tool, table string) (backup string, want servers.Dump) {
	t.Helper()
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(4),
		Families: []servers.FamilySpec{{Name: "a", Versions: 3}, {Name: "b", MOB: true, MOBThreshold: 500}}}))
	load := servers.Mixed(31, 1500)
	load.FlushEvery, load.BigPercent, load.BigBytes = 500, 10, 2000
	_, err := cluster.Load(t.Context(), table, load)
	check(t, err)
	backup = x.Backup(t, "prod", table)
	return backup, dump(t, table)
}

// killed is a restore that was ended by SIGKILL.
type killed struct {
	step failpoint.Step
	as   string
	args []string
}

func (k killed) run(t *testing.T, x *cli.Tool) cli.Result { return x.Run(t.Context(), k.args...) }

// TestKilledAtEveryStep kills a restore at each of its steps, has the cleaners
// run, and runs it again with the same request id.
func TestKilledAtEveryStep(t *testing.T) {
	x := tool(t)
	id, want := source(t, x, "kill:source")
	var all []killed
	kill := func(step failpoint.Step) {
		t.Helper()
		n := len(all)
		k := killed{step: step, as: fmt.Sprintf("kill:t%d", n)}
		if step == restore.StepNamespaceMade {
			k.as = fmt.Sprintf("killns%d:t", n)
		}
		k.args = []string{"restore", id, "--table", "kill:source", "--as", k.as, "--create-namespace", "--request-id", fmt.Sprintf("kill-%d", n)}
		all = append(all, k)
		times := ""
		if step == restore.StepFileOpened || step == restore.StepFileCopied {
			times = "#3"
		}
		if r := k.run(t, x.With("HBACKUP_FAILPOINT="+string(step)+times)); !r.Killed {
			t.Fatalf("not killed at %s: %s", step, r)
		}
	}
	// An incomplete snapshot directory stops the cleaners, so those steps, which
	// leave one until the second run, come after the cleaners.
	incomplete := []failpoint.Step{restore.StepDirectoryMade, restore.StepManifestWritten}
	for _, step := range restore.Steps {
		if !slices.Contains(incomplete, step) {
			kill(step)
		}
	}
	duringClone(t, x, id, &all)
	if !clean(t) {
		t.Error("a killed restore stops the cleaners, other than in the two steps where it must")
	}
	for _, step := range incomplete {
		kill(step)
	}
	if clean(t) {
		t.Error("the cleaners work beside an incomplete snapshot: this test's order is not needed any more")
	}

	// A killed process holds its lease until it expires, so all wait together.
	results := make([]cli.Result, len(all))
	var wg sync.WaitGroup
	for i, k := range all {
		wg.Go(func() { results[i] = k.run(t, x) })
	}
	wg.Wait()
	for i, k := range all {
		if results[i].Code != 0 {
			t.Errorf("killed at %s, then: %s", k.step, results[i])
			continue
		}
		if done := k.step == restore.StepJobFinished || k.step == restore.StepSnapshotDeleted; done != strings.Contains(results[i].Stdout, "already done") {
			t.Errorf("killed at %s, then it says: %s", k.step, results[i])
		}
		if err := servers.DiffDumps(want, dump(t, k.as)); err != nil {
			t.Errorf("killed at %s: %v", k.step, err)
		}
		if again := k.run(t, x); again.Code != 0 || !strings.Contains(again.Stdout, "already done") {
			t.Errorf("killed at %s, third run: %s", k.step, again)
		}
	}
	if left := snapshots(t); len(left) > 0 {
		t.Errorf("snapshots left: %q", left)
	}
	check(t, cluster.RefreshSnapshotCache(t.Context()))
	if !clean(t) {
		t.Error("something stops the cleaners")
	}
	for _, k := range all {
		check(t, servers.DiffDumps(want, dump(t, k.as)))
		check(t, cluster.Drop(t.Context(), k.as))
	}
	stagesVanish(t)
}

// duringClone kills a restore when the master has begun to make the table.
func duringClone(t *testing.T, x *cli.Tool, id string, all *[]killed) {
	t.Helper()
	k := killed{step: "during the clone", as: "kill:during"}
	k.args = []string{"restore", id, "--table", "kill:source", "--as", k.as, "--request-id", "kill-during"}
	*all = append(*all, k)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if tables, err := cluster.ListTables(ctx); err == nil && tables[k.as] != "" {
				cancel()
			}
		}
	}()
	r := x.Run(ctx, k.args...)
	t.Logf("killed during the clone: %v", r.Killed)
}

// stagesVanish waits until the cleaners have removed all staging places, which
// nobody uses any more. A directory goes a pass after its last file.
func stagesVanish(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		clean(t)
		left := staged(t)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("staging places left after all tables were dropped: %q", left)
		}
		if _, err := cluster.RunCatalogJanitor(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
