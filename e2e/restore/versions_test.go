package restore

import (
	"path"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// TestEveryVersion restores on each supported line of HBase to a new name and,
// after a drop, to the table's own name; then the table lives on: it is split,
// compacted and cleaned. Regions of a restored table have ids of their own, which
// no version may mind.
func TestEveryVersion(t *testing.T) {
	for _, v := range []servers.Version{servers.HBase24, servers.HBase25, servers.HBase30} { // 2.6 is everywhere else
		t.Run(string(v), func(t *testing.T) {
			c := servers.ForTest(t).Cluster(servers.ClusterOptions{Version: v, HBase: servers.EagerCleaners()})
			ctx := t.Context()
			x := cli.New(t, cli.Config{
				Clusters:  map[string]cli.Cluster{"prod": cli.Of(c, "dir")},
				Locations: map[string]map[string]any{"dir": cli.Dir(t, path.Join(dir, "version-"+string(v)))},
			})
			const table = "v:source"
			check(t, c.CreateTable(ctx, servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(3), Families: servers.Families("a", "b")}))
			load := servers.Mixed(41, 800)
			load.FlushEvery = 300
			_, err := c.Load(ctx, table, load)
			check(t, err)
			want, err := c.Dump(ctx, table, false)
			check(t, err)
			id := x.Backup(t, "prod", table)
			same := func(as string) {
				t.Helper()
				got, err := c.Dump(ctx, as, false)
				check(t, err)
				check(t, servers.DiffDumps(want, got))
			}
			x.OK(t, "restore", id, "--table", table, "--as", "v:other")
			same("v:other")
			check(t, c.Drop(ctx, table))
			x.OK(t, "restore", id, "--table", table, "--as", table)
			same(table)
			for _, as := range []string{table, "v:other"} {
				regions, err := c.Regions(ctx, as)
				check(t, err)
				_, err = c.Split(ctx, as, regions[1].Encoded, []byte("80000000"))
				check(t, err)
				same(as)
				check(t, c.MajorCompact(ctx, as))
				check(t, c.ArchiveCompacted(ctx))
				_, err = c.RunCatalogJanitor(ctx)
				check(t, err)
				check(t, c.RefreshSnapshotCache(ctx))
				_, err = c.RunCleaner(ctx)
				check(t, err)
				check(t, c.Reopen(ctx, as))
				same(as)
			}
		})
	}
}
