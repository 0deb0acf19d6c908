package servers_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hbackup/e2e/servers"
)

func TestEveryVersionTakesDataAndLeavesNothingBehind(t *testing.T) {
	for _, v := range servers.Versions() {
		t.Run(string(v), func(t *testing.T) {
			var conf string
			used := t.Run("use", func(t *testing.T) {
				c := servers.ForTest(t).Cluster(servers.ClusterOptions{Version: v})
				conf = c.ConfDir()
				use(t, c)
			})
			if !used {
				return // and everything is kept
			}
			if _, err := os.Stat(conf); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", conf, err)
			}
			assertNoChildren(t)
		})
	}
}

// use makes a table with a bit of everything, moves its files about in every
// way, and checks that its cells stay the same.
func use(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	const table = "shop:orders"
	check(t, c.CreateTable(ctx, servers.TableSpec{
		Name: table,
		Families: []servers.FamilySpec{
			{Name: "a", Versions: 3, Encoding: "FAST_DIFF", Bloom: "ROWCOL"},
			{Name: "b", Versions: 3, Compression: "GZ", MOB: true, MOBThreshold: 1000, KeepDeleted: "TRUE"},
		},
		SplitKeys: servers.HexSplits(3),
	}))
	load := servers.Mixed(7, 400)
	load.BigPercent, load.BigBytes, load.FlushEvery = 5, 2000, 150
	check(t, c.SetCompaction(ctx, false)) // it would drop cells from raw dumps
	loaded, err := c.Load(ctx, table, load)
	check(t, err)
	if loaded.Rows != 400 || loaded.Puts < 400*2*3*2 || loaded.Deletes == 0 || loaded.Adds == 0 {
		t.Errorf("loaded %+v", loaded)
	}
	check(t, c.Flush(ctx, table)) // it drops what a delete in the same memory hides
	raw := dump(t, c, table, true)
	if raw.Markers == 0 || raw.Cells < int64(raw.Markers)+400*3 {
		t.Errorf("raw dump %+v of %+v", raw, loaded)
	}
	visible := dump(t, c, table, false)
	if visible.Markers != 0 || visible.Cells == 0 || visible.Cells >= raw.Cells {
		t.Errorf("visible dump %+v, raw %+v", visible, raw)
	}

	check(t, c.Snapshot(ctx, table, "s1"))
	check(t, c.CloneSnapshot(ctx, "s1", "copy"))
	check(t, servers.DiffDumps(visible, dump(t, c, "copy", false)))
	check(t, servers.DiffDumps(raw, dump(t, c, "copy", true)))
	snapshots, err := c.ListSnapshots(ctx)
	check(t, err)
	if len(snapshots) != 1 || snapshots[0].Name != "s1" || snapshots[0].Table != table {
		t.Errorf("snapshots %+v", snapshots)
	}

	regions, err := c.Regions(ctx, table)
	check(t, err)
	if len(regions) != 3 {
		t.Fatalf("%d regions", len(regions))
	}
	regions, err = c.Split(ctx, table, regions[1].Encoded, []byte("80000000"))
	check(t, err)
	if len(regions) != 4 {
		t.Fatalf("%d regions after a split", len(regions))
	}
	check(t, servers.DiffDumps(visible, dump(t, c, table, false)))
	check(t, c.SetCompaction(ctx, true))
	check(t, c.MajorCompact(ctx, table))
	check(t, c.ArchiveCompacted(ctx))
	if _, err := c.RunCatalogJanitor(ctx); err != nil {
		t.Fatal(err)
	}
	regions, err = c.MergeRegions(ctx, table, regions[2].Encoded, regions[3].Encoded)
	check(t, err)
	if len(regions) != 3 {
		t.Fatalf("%d regions after a merge", len(regions))
	}
	check(t, c.Reopen(ctx, table))
	check(t, servers.DiffDumps(visible, dump(t, c, table, false)))
	cells, err := c.BulkLoad(ctx, table, servers.LoadSpec{Seed: 9, Rows: 100, Families: []string{"a"}})
	check(t, err)
	if cells != 100 {
		t.Errorf("%d cells bulk loaded", cells)
	}
	after := dump(t, c, table, false)
	if after.Cells != visible.Cells+100 || servers.DiffDumps(visible, after) == nil {
		t.Errorf("dump %+v after a bulk load of 100 cells onto %+v", after, visible)
	}

	check(t, c.Truncate(ctx, "copy", true))
	if d := dump(t, c, "copy", true); d.Cells != 0 {
		t.Errorf("%d cells after truncate", d.Cells)
	}
	check(t, c.Drop(ctx, "copy"))
	tables, err := c.ListTables(ctx)
	check(t, err)
	if len(tables) != 1 || tables[table] != "enabled" {
		t.Errorf("tables %v", tables)
	}
	check(t, c.DeleteSnapshot(ctx, "s1"))
	if _, err := c.RunCleaner(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = c.Describe(ctx, "nosuch")
	var thrown *servers.DriverError
	if !errors.As(err, &thrown) {
		t.Errorf("describe a missing table: %v", err)
	}
}

func dump(t *testing.T, c *servers.Cluster, table string, raw bool) servers.Dump {
	t.Helper()
	d, err := c.Dump(t.Context(), table, raw)
	check(t, err)
	return d
}

// check ends the test on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// assertNoChildren asks the kernel.
func assertNoChildren(t *testing.T) {
	t.Helper()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child process is left: %d, %v", pid, err)
	}
}

func TestUnknownVersionIsRefusedBeforeAnythingStarts(t *testing.T) {
	_, err := servers.StartHBase(context.Background(), servers.HBaseOptions{Version: "1.7"})
	if err == nil {
		t.Fatal("HBase 1.7 started")
	}
	if slices.Contains(servers.Versions(), "1.7") {
		t.Fatal("1.7 is a version")
	}
}

// lines gives a dump's text with blanks for tabs.
func lines(t *testing.T, d servers.Dump) string {
	t.Helper()
	text, err := os.ReadFile(d.File)
	check(t, err)
	return strings.ReplaceAll(string(text), "\t", " ")
}
