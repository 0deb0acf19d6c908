package faults

import (
	"testing"

	"hbackup/e2e/servers"
)

// TestNameNodeCalls counts what a backup asks of the name node: nothing is
// listed, each file is opened once, and each look is at one path.
func TestNameNodeCalls(t *testing.T) {
	const name, user = "faults:calls", "hbackup-counted"
	check(t, cluster.SetCompaction(t.Context(), false))
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: name, SplitKeys: servers.HexSplits(10), Families: servers.Families("f")}))
	_, err := cluster.Load(t.Context(), name, servers.LoadSpec{Seed: 800, Rows: 500, ValueBytes: 20})
	check(t, err)
	check(t, cluster.Flush(t.Context(), name))
	const files = 10

	conf := config(t)
	cl := conf.Clusters["prod"]
	cl.User = user // HBase's own calls bear another name
	conf.Clusters["prod"] = cl
	x := toolOf(t, conf)
	count := func() map[string]int {
		calls, err := cluster.HDFS.Calls()
		check(t, err)
		return servers.CountCalls(calls, func(c servers.NameNodeCall) bool { return c.User == user })
	}
	x.Backup(t, "prod", name)
	first := count()
	total := 0
	for _, n := range first {
		total += n
	}
	t.Logf("a backup of %d files costs the name node %v", files, first)
	if total > 2*files+10 {
		t.Errorf("a backup of %d files costs the name node %d calls: %v", files, total, first)
	}
	if first["listStatus"] > 0 {
		t.Errorf("a backup lists directories: %v", first)
	}
	if first["open"] < files {
		t.Errorf("a backup opens %d files: %v", first["open"], first)
	}

	// Files that the location holds already cost nothing.
	x.Backup(t, "prod", name)
	again := 0
	for command, n := range count() {
		again += n - first[command]
	}
	if again > 10 {
		t.Errorf("a backup that copies nothing costs the name node %d calls", again)
	}
}
