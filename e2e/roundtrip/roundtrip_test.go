package roundtrip

import (
	"strings"
	"sync"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// target is a kind of location, and the cluster in tool that backs up to it.
type target struct{ cluster, location string }

var targets = []target{{"prod", "s3"}, {"gcs", "gcs"}, {"hdfs", "hdfs"}, {"file", "file"}}

// TestEveryKindOfTable backs all kinds up in one run to each kind of location,
// restores every table from each and compares raw cells, delete markers included;
// the one of 200 regions from one location alone. Then one of the restored tables,
// another location's each time, lives on: the snapshot is gone, janitor and
// cleaners run with TTL zero, it is reopened, compacted, cleaned and reopened
// again, and must still show the same cells.
func TestEveryKindOfTable(t *testing.T) {
	x := tool(t)
	check(t, cluster.SetCompaction(t.Context(), false))
	var tables []string
	raw, visible := map[string]servers.Dump{}, map[string]servers.Dump{}
	for _, k := range kinds {
		k.make(t, k.table)
		tables = append(tables, k.table)
		raw[k.table], visible[k.table] = dump(t, cluster, k.table, true), dump(t, cluster, k.table, false)
	}
	ids := map[target]string{}
	for _, to := range targets {
		ids[to] = x.Backup(t, to.cluster, tables...)
		x.OK(t, "verify", ids[to], "--cluster", to.cluster)
	}
	noneLeft(t, x, "prod")
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			// A compaction would drop the markers that the raw scan compares.
			check(t, cluster.SetCompaction(t.Context(), false))
			from, lives := targets, targets[i%len(targets)]
			if k.once {
				from = []target{lives}
			}
			restoreFrom(t, x, from, ids, k.table)
			for _, from := range from {
				check(t, servers.DiffDumps(raw[k.table], dump(t, cluster, restoredName(k.table, from.location), true)))
			}
			check(t, cluster.SetCompaction(t.Context(), true))
			liveOn(t, x, "prod", cluster, restoredName(k.table, lives.location), visible[k.table])
			for _, from := range from {
				check(t, cluster.Drop(t.Context(), restoredName(k.table, from.location)))
			}
		})
	}
}

// restoreFrom restores the table from the backups in the locations, all at a time.
func restoreFrom(t *testing.T, x *cli.Tool, locations []target, ids map[target]string, table string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, from := range locations {
		wg.Go(func() {
			r := x.Run(t.Context(), "restore", ids[from], "--table", table, "--as", restoredName(table, from.location),
				"--from-cluster", from.cluster, "--to-cluster", "prod")
			if r.Code != 0 {
				t.Errorf("from %s: %s", from.location, r)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// liveOn does to a restored table what its life will bring.
func liveOn(t *testing.T, x *cli.Tool, name string, c *servers.Cluster, table string, want servers.Dump) {
	t.Helper()
	ctx := t.Context()
	janitor := func() {
		t.Helper()
		_, err := c.RunCatalogJanitor(ctx)
		check(t, err)
		_, err = c.RunCleaner(ctx)
		check(t, err)
	}
	noneLeft(t, x, name)
	janitor()
	check(t, c.Reopen(ctx, table))
	check(t, servers.DiffDumps(want, dump(t, c, table, false)))
	check(t, c.MajorCompact(ctx, table))
	check(t, c.ArchiveCompacted(ctx))
	janitor()
	check(t, c.Reopen(ctx, table))
	check(t, servers.DiffDumps(want, dump(t, c, table, false)))
}

// TestSecondCluster restores to a cluster that has never seen the table, with a
// name space that is missing there. MOB cells carry the name of their table.
func TestSecondCluster(t *testing.T) {
	other := servers.ForTest(t).Cluster(servers.ClusterOptions{HBase: servers.EagerCleaners()})
	both := toolOf(t, other)
	tables := []string{"second:mixed", "second:mob"}
	create(t, tables[0], servers.HexSplits(3), servers.FamilySpec{Name: "a", Versions: 5}, servers.FamilySpec{Name: "b"})
	fill(t, tables[0], servers.Mixed(21, 1000))
	create(t, tables[1], nil, servers.FamilySpec{Name: "f", MOB: true, MOBThreshold: 1000})
	load := servers.Mixed(22, 300)
	load.BigPercent, load.BigBytes = 30, 5000
	fill(t, tables[1], load)
	id := both.Backup(t, "prod", tables...)
	for _, table := range tables {
		want, wantVisible := dump(t, cluster, table, true), dump(t, cluster, table, false)
		if table == tables[0] {
			r := both.Run(t.Context(), "restore", id, "--table", table, "--as", table, "--from-cluster", "prod", "--to-cluster", "other")
			if r.Code != 10 || !strings.Contains(r.Stderr, "--create-namespace") {
				t.Errorf("a missing name space: %s", r)
			}
		}
		both.OK(t, "restore", id, "--table", table, "--as", table, "--from-cluster", "prod", "--to-cluster", "other", "--create-namespace")
		check(t, servers.DiffDumps(want, dump(t, other, table, true)))
		liveOn(t, both, "other", other, table, wantVisible)
	}
}

// TestCloneOfAMOBTableIsNotBackedUpWithoutItsValues: HBase's snapshot of a clone
// does not name the MOB files that its cells need. hbackup says so instead of
// making an image whose big values are gone.
func TestCloneOfAMOBTableIsNotBackedUpWithoutItsValues(t *testing.T) {
	x := tool(t)
	check(t, cluster.SetCompaction(t.Context(), false))
	defer func() { check(t, cluster.SetCompaction(t.Context(), true)) }()
	create(t, "mobclone:source", nil, servers.FamilySpec{Name: "f", MOB: true, MOBThreshold: 1000})
	load := servers.LoadSpec{Seed: 31, Rows: 50, ValueBytes: 2000}
	fill(t, "mobclone:source", load)
	check(t, cluster.Snapshot(t.Context(), "mobclone:source", "mob_for_clone"))
	check(t, cluster.CloneSnapshot(t.Context(), "mob_for_clone", "mobclone:copy"))
	check(t, cluster.DeleteSnapshot(t.Context(), "mob_for_clone"))
	r := x.Run(t.Context(), "backup", "--cluster", "prod", "--tables", "mobclone:copy")
	if r.Code != 1 || !strings.Contains(r.Stderr, "needs the MOB file") || !strings.Contains(r.Stderr, "hint: ") {
		t.Errorf("a clone: %s", r)
	}
	// The source itself is whole, and after it the clone is no less refused.
	x.Backup(t, "prod", "mobclone:source")
	if r := x.Run(t.Context(), "backup", "--cluster", "prod", "--tables", "mobclone:copy"); r.Code != 1 {
		t.Errorf("the clone after its source: %s", r)
	}
	noneLeft(t, x, "prod")
}
