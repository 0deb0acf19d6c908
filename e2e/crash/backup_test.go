package crash

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"hbackup/backup"
	"hbackup/e2e/cli"
	"hbackup/internal/failpoint"
)

// A run that is to be killed claims its lease for so long, so that the next one
// need not wait half a minute for it.
const shortLease = "HBACKUP_LEASE_TTL=8s"

// point is where a backup is killed, and what is left then.
type point struct {
	at       string // as HBACKUP_FAILPOINT
	snapshot bool   // its snapshot is on the cluster
	done     bool   // the request had reached its end
}

// points gives every step of a backup, those that come several times also with a
// later hit.
func points() []point {
	var all []point
	for _, s := range backup.Steps {
		after := func(other failpoint.Step) bool {
			return slices.Index(backup.Steps, s) >= slices.Index(backup.Steps, other)
		}
		p := point{string(s), after(backup.StepSnapshotTaken) && !after(backup.StepSnapshotDeleted), after(backup.StepRunCommitted)}
		all = append(all, p)
		if s == backup.StepFileCopied {
			p.at += "#5"
			all = append(all, p)
		}
	}
	return all
}

// TestBackupKilledAtEveryStep kills a backup at each of its steps, in a bucket and
// in a directory, has HBase compact the table and clean its archive, and runs
// the same request again.
func TestBackupKilledAtEveryStep(t *testing.T) {
	const name = "crash:steps"
	table(t, name, 1)
	raw, visible := dump(t, name, true), dump(t, name, false)

	type killed struct {
		point
		place
		args []string
	}
	var all []killed
	var places []place
	for i, p := range points() {
		for _, at := range []place{s3Place(fmt.Sprintf("s3-%d", i)), dirPlace(fmt.Sprintf("dir-%d", i))} {
			places = append(places, at)
			all = append(all, killed{p, at, backupArgs(at, "crash", name)})
		}
	}
	x := toolFor(t, places...)
	for _, k := range all {
		r := x.With(shortLease, "HBACKUP_FAILPOINT="+k.at).Run(t.Context(), k.args...)
		if !r.Killed {
			t.Fatalf("not killed at %s: %s", k.at, r)
		}
		left := slices.ContainsFunc(ours(t), func(s string) bool { return strings.HasPrefix(s, "hbackup."+k.name+".") })
		if left != k.snapshot {
			t.Errorf("killed at %s: a snapshot is left: %v", k.at, left)
		}
	}
	if i := items(t, x, places[0])["snapshots"]; i.Status != "WARNING" || !strings.Contains(i.Detail, "hbackup.") || i.Hint == "" {
		t.Errorf("check says of the snapshots left: %+v", i)
	}
	chores(t, name)
	for _, k := range all {
		b := resultOf(t, x.Run(t.Context(), k.args...))
		if b.AlreadyDone != k.done {
			t.Errorf("killed at %s: the next run says already_done: %v", k.at, b.AlreadyDone)
		}
		oneImage(t, x, k.place, b)
		if again := resultOf(t, x.Run(t.Context(), k.args...)); !again.AlreadyDone || again.Backup != b.Backup {
			t.Errorf("killed at %s: the third run says %+v, the second %+v", k.at, again, b)
		}
	}
	noneLeft(t, x, places[0])
	for i, k := range all {
		if i%2 == 1 && k.at != string(backup.StepFileCopied) { // one restore for each step is enough
			continue
		}
		var again backupResult
		x.JSON(t, &again, k.args[2:]...)
		// What was cut before the compaction comes back cell by cell, markers included.
		want := visible
		if k.snapshot {
			want = raw
		}
		equal(t, x, k.place, again.Backup, name, want, k.snapshot)
	}
}

// TestBackupKilledAgainAndAgain kills one request at one step after the other.
func TestBackupKilledAgainAndAgain(t *testing.T) {
	const name = "crash:again"
	table(t, name, 2)
	want := dump(t, name, true)
	p := s3Place("again")
	x := toolFor(t, p)
	args := backupArgs(p, "again", name)
	for _, at := range []failpoint.Step{backup.StepSnapshotTaken, backup.StepFileCopied + "#3", backup.StepImageCommitted} {
		if r := x.With("HBACKUP_LEASE_TTL=5s", "HBACKUP_FAILPOINT="+string(at)).Run(t.Context(), args...); !r.Killed {
			t.Fatalf("not killed at %s: %s", at, r)
		}
		clean(t)
	}
	b := resultOf(t, x.Run(t.Context(), args...))
	oneImage(t, x, p, b)
	noneLeft(t, x, p)
	equal(t, x, p, b.Backup, name, want, true)
}

// TestDeadRunIsTidiedByAnother kills a run that is never run again: the next
// request in that location deletes its snapshot, and its files do no harm.
func TestDeadRunIsTidiedByAnother(t *testing.T) {
	const name = "crash:dead"
	table(t, name, 3)
	p := dirPlace("dead")
	x := toolFor(t, p)
	if r := x.With("HBACKUP_LEASE_TTL=5s", "HBACKUP_FAILPOINT=backup.file-copied#4").Run(t.Context(), backupArgs(p, "dead", name)...); !r.Killed {
		t.Fatalf("not killed: %s", r)
	}
	dead := ours(t)
	if len(dead) != 1 {
		t.Fatalf("snapshots: %q", dead)
	}
	awaitDeath(t, x, p)
	want := dump(t, name, true)
	b := resultOf(t, x.Run(t.Context(), backupArgs(p, "next", name)...))
	if left := ours(t); len(left) > 0 {
		t.Errorf("the next run left %q", left)
	}
	equal(t, x, p, b.Backup, name, want, true)
	var list struct {
		Backups []backupResult `json:"backups"`
	}
	x.JSON(t, &list, "list", "--cluster", p.name)
	if len(list.Backups) != 2 || list.Backups[0].State != "failed" || list.Backups[1].State != "complete" {
		t.Errorf("the list shows %+v", list.Backups)
	}
	// The dead request can still be brought to its end, from a new snapshot.
	b = resultOf(t, x.Run(t.Context(), backupArgs(p, "dead", name)...))
	x.OK(t, "verify", b.Backup)
	noneLeft(t, x, p)
}

// awaitDeath waits until the lease of the killed run has ended.
func awaitDeath(t *testing.T, x *cli.Tool, p place) {
	t.Helper()
	for {
		var list struct {
			Backups []backupResult `json:"backups"`
		}
		x.JSON(t, &list, "list", "--cluster", p.name)
		if len(list.Backups) == 1 && list.Backups[0].State == "failed" {
			return
		}
		if len(list.Backups) != 1 || list.Backups[0].State != "running" {
			t.Fatalf("the list shows %+v", list.Backups)
		}
	}
}

// TestTwoAtOnce backs one table up by two requests at a time, and one request in
// two processes at a time.
func TestTwoAtOnce(t *testing.T) {
	const name = "crash:two"
	table(t, name, 4)
	want := dump(t, name, true)
	for _, p := range []place{s3Place("two-s3"), dirPlace("two-dir")} {
		x := toolFor(t, p)
		both := func(requests ...string) []cli.Result {
			results := make([]cli.Result, len(requests))
			var wg sync.WaitGroup
			for i, request := range requests {
				wg.Go(func() { results[i] = x.Run(t.Context(), backupArgs(p, request, name)...) })
			}
			wg.Wait()
			return results
		}
		ids := map[string]bool{}
		for _, r := range both("one", "other") {
			if r.Code != 0 && r.Code != 11 {
				t.Errorf("%s", r)
			}
			if r.Code == 0 {
				ids[resultOf(t, r).Backup] = true
			}
		}
		if len(ids) == 0 {
			t.Error("neither of two requests got through")
		}
		same := map[string]bool{}
		for _, r := range both("same", "same", "same") {
			if r.Code != 0 && r.Code != 11 {
				t.Errorf("%s", r)
			}
			if r.Code == 0 {
				same[resultOf(t, r).Backup] = true
			}
		}
		if len(same) != 1 {
			t.Errorf("one request in three processes made the backups %v", same)
		}
		if images := p.files(t, "images"); len(images) != len(ids)+1 {
			t.Errorf("%d requests made the images %v", len(ids)+1, images)
		}
		for id := range same {
			ids[id] = true
		}
		for id := range ids {
			x.OK(t, "verify", id)
			equal(t, x, p, id, name, want, true)
		}
		noneLeft(t, x, p)
	}
}
