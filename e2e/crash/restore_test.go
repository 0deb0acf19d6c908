package crash

import (
	"strings"
	"testing"

	"hbackup/e2e/servers"
	"hbackup/internal/failpoint"
	"hbackup/restore"
)

// TestRestoreNeverRunAgain kills restores and leaves them: check names what is
// left and the way out, and neither backups nor restores are disturbed by it.
// Package e2e/restore shows how killed restores go on.
func TestRestoreNeverRunAgain(t *testing.T) {
	const name = "crash:source"
	table(t, name, 6)
	want := dump(t, name, true)
	p := dirPlace("never")
	x := toolFor(t, p)
	first := resultOf(t, x.Run(t.Context(), backupArgs(p, "first", name)...))
	leave := func(request string, step failpoint.Step) {
		t.Helper()
		k := x.With("HBACKUP_FAILPOINT="+string(step)).Run(t.Context(), "restore", first.Backup, "--table", name, "--as", "crash:left-"+request, "--request-id", request)
		if !k.Killed {
			t.Fatalf("not killed at %s: %s", step, k)
		}
	}
	leave("half", restore.StepManifestWritten)
	leave("copied", restore.StepFileCopied+"#2")
	leave("cloned", restore.StepCloned)
	all := items(t, x, p)
	if i := all["cleaners"]; i.Status != "WARNING" || !strings.Contains(i.Detail, "hbackup-restore.half.") || !strings.Contains(i.Hint, "hdfs dfs -rm -r") {
		t.Errorf("check says of the cleaners: %+v", i)
	}
	for _, request := range []string{"copied", "cloned"} {
		if i := all["snapshots"]; i.Status != "WARNING" || !strings.Contains(i.Detail, "hbackup-restore."+request+".") || !strings.Contains(i.Hint, "delete_snapshot") {
			t.Errorf("check says of the snapshots: %+v", i)
		}
	}

	second := resultOf(t, x.Run(t.Context(), backupArgs(p, "second", name)...))
	for _, b := range []backupResult{first, second} {
		equal(t, x, p, b.Backup, name, want, true)
	}

	// The ways out that check names, then nothing is left.
	_, at, _ := strings.Cut(all["cleaners"].Detail, cluster.HDFS.URI())
	check(t, hdfs(t).RemoveAll(t.Context(), at))
	for _, s := range ours(t) {
		check(t, cluster.DeleteSnapshot(t.Context(), s))
	}
	noneLeft(t, x, p)
	if err := servers.DiffDumps(want, dump(t, "crash:left-cloned", true)); err != nil {
		t.Errorf("the table that was cloned when the restore was killed: %v", err)
	}
}
