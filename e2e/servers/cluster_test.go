package servers_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"testing"

	"hbackup/e2e/servers"
)

// TestCluster shares one cluster of the main version: two region servers and
// cleaners that delete at once.
func TestCluster(t *testing.T) {
	c := servers.ForTest(t).Cluster(servers.ClusterOptions{RegionServers: 2, HBase: servers.EagerCleaners()})
	t.Run("codecs", func(t *testing.T) { codecs(t, c) })
	t.Run("loads are deterministic", func(t *testing.T) { loadsAreDeterministic(t, c) })
	t.Run("puts and deletes", func(t *testing.T) { putsAndDeletes(t, c) })
	t.Run("snapshots keep the archive from the cleaner", func(t *testing.T) { cleaner(t, c) })
	t.Run("tools", func(t *testing.T) { tools(t, c) })
	t.Run("name node calls", func(t *testing.T) { nameNodeCalls(t, c) })
	t.Run("moves and the end of a region server", func(t *testing.T) { regionServerEnds(t, c) })
	t.Run("data outlive kill and shutdown", func(t *testing.T) { restarts(t, c) })
}

func codecs(t *testing.T, c *servers.Cluster) {
	var families []servers.FamilySpec
	for _, codec := range []string{"NONE", "GZ", "SNAPPY", "ZSTD"} {
		families = append(families, servers.FamilySpec{Name: strings.ToLower(codec), Compression: codec, Encoding: "ROW_INDEX_V1"})
	}
	check(t, c.CreateTable(t.Context(), servers.TableSpec{Name: "codecs", Families: families}))
	_, err := c.Load(t.Context(), "codecs", servers.LoadSpec{Rows: 300, ValueBytes: 50})
	check(t, err)
	check(t, c.Flush(t.Context(), "codecs"))
	if d := dump(t, c, "codecs", false); d.Cells != 4*300 {
		t.Errorf("%d cells", d.Cells)
	}
}

func loadsAreDeterministic(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	spec := servers.Mixed(42, 200)
	spec.IncrementPercent, spec.AppendPercent = 0, 0 // these take the server's clock
	check(t, c.SetCompaction(ctx, false))
	defer func() { check(t, c.SetCompaction(ctx, true)) }()
	var dumps []servers.Dump
	for i, splits := range [][][]byte{nil, servers.HexSplits(5)} {
		name := []string{"one", "five"}[i]
		check(t, c.CreateTable(ctx, servers.TableSpec{Name: name, Families: servers.Families("a", "b"), SplitKeys: splits}))
		_, err := c.Load(ctx, name, spec)
		check(t, err)
		regions, err := c.Regions(ctx, name)
		check(t, err)
		if len(regions) != len(splits)+1 {
			t.Errorf("%d regions", len(regions))
		}
		dumps = append(dumps, dump(t, c, name, true))
	}
	check(t, servers.DiffDumps(dumps[0], dumps[1]))
	spec.Seed++
	_, err := c.Load(ctx, "five", spec)
	check(t, err)
	if servers.DiffDumps(dumps[0], dump(t, c, "five", true)) == nil {
		t.Error("another seed gave the same cells")
	}
}

func putsAndDeletes(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	check(t, c.CreateTable(ctx, servers.TableSpec{Name: "cells", Families: []servers.FamilySpec{{Name: "f", Versions: 5}}}))
	row := []byte{0, 'r', 0xff}
	cell := servers.CellSpec{Row: row, Family: "f", Qualifier: []byte("q"), Timestamp: 10, Value: []byte("v,#"),
		Tags: []servers.Tag{{Type: 70, Value: []byte("tag")}}}
	expiring := servers.CellSpec{Row: row, Family: "f", Qualifier: []byte("r"), Timestamp: 10, TTL: 1 << 50}
	other := servers.CellSpec{Row: row, Family: "f", Timestamp: 11, Value: bytes.Repeat([]byte("x"), 97)}
	check(t, c.Put(ctx, "cells", cell, expiring, other))
	check(t, c.Delete(ctx, "cells",
		servers.DeleteSpec{Kind: servers.DeleteVersion, Row: row, Family: "f", Qualifier: []byte("q"), Timestamp: 10},
		servers.DeleteSpec{Kind: servers.DeleteColumn, Row: row, Family: "f", Qualifier: []byte("q"), Timestamp: 9},
		servers.DeleteSpec{Kind: servers.DeleteFamily, Row: row, Family: "f", Timestamp: 8},
		servers.DeleteSpec{Kind: servers.DeleteFamilyVersion, Row: row, Family: "f", Timestamp: 7}))
	want := strings.Join([]string{
		fmt.Sprintf(`\x00r\xff f  11 Put #97:%x `, sha256.Sum256(other.Value)),
		`\x00r\xff f  8 DeleteFamily  `,
		`\x00r\xff f  7 DeleteFamilyVersion  `,
		`\x00r\xff f q 10 Delete  `,
		`\x00r\xff f q 10 Put v\x2c\x23 70=tag`,
		`\x00r\xff f q 9 DeleteColumn  `,
		`\x00r\xff f r 10 Put  8=\x00\x04\x00\x00\x00\x00\x00\x00`,
	}, "\n") + "\n"
	got := lines(t, dump(t, c, "cells", true))
	if got != want {
		t.Errorf("raw:\n%s\nwant:\n%s", got, want)
	}
	if d := dump(t, c, "cells", false); d.Cells != 2 || d.Markers != 0 {
		t.Errorf("visible: %+v\n%s", d, lines(t, d))
	}
}

// cleaner: what a snapshot names stays in the archive, and goes when the snapshot does.
func cleaner(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	check(t, c.CreateTable(ctx, servers.TableSpec{Name: "clean:t", Families: servers.Families("f")}))
	for i := range 2 {
		_, err := c.Load(ctx, "clean:t", servers.LoadSpec{Seed: int64(i), Rows: 20, ValueBytes: 8})
		check(t, err)
		check(t, c.Flush(ctx, "clean:t"))
	}
	check(t, c.Snapshot(ctx, "clean:t", "keep"))
	check(t, c.MajorCompact(ctx, "clean:t"))
	check(t, c.ArchiveCompacted(ctx))
	archived := func() int {
		out, err := c.RunTool(ctx, "org.apache.hadoop.fs.FsShell", "-ls", "-R", c.Root()+"/archive")
		check(t, err)
		n := 0
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			if strings.HasPrefix(line, "-") && strings.Contains(line, "/clean/t/") && path.Base(path.Dir(fields[len(fields)-1])) == "f" {
				n++
			}
		}
		return n
	}
	if clean, err := c.RunCleaner(ctx); err != nil {
		t.Fatal(clean, err)
	}
	if n := archived(); n != 2 {
		t.Errorf("%d archived files with the snapshot", n)
	}
	check(t, c.DeleteSnapshot(ctx, "keep"))
	check(t, c.RefreshSnapshotCache(ctx))
	if clean, err := c.RunCleaner(ctx); err != nil {
		t.Fatal(clean, err)
	}
	if n := archived(); n != 0 {
		t.Errorf("%d archived files without the snapshot", n)
	}
}

func tools(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	check(t, c.Snapshot(ctx, "codecs", "tool"))
	out, err := c.RunTool(ctx, "org.apache.hadoop.hbase.snapshot.SnapshotInfo", "-snapshot", "tool", "-files", "-stats")
	check(t, err)
	if !strings.Contains(out, "4 HFiles") {
		t.Errorf("SnapshotInfo:\n%s", out)
	}
	to := c.HDFS.URI() + "/export"
	_, err = c.RunTool(ctx, "org.apache.hadoop.hbase.snapshot.ExportSnapshot", "-snapshot", "tool", "-copy-to", to, "-mappers", "1")
	check(t, err)
	out, err = c.RunTool(ctx, "org.apache.hadoop.hbase.snapshot.SnapshotInfo", "-snapshot", "tool", "-remote-dir", to, "-files", "-stats")
	check(t, err)
	if !strings.Contains(out, "4 HFiles") {
		t.Errorf("SnapshotInfo of the exported one:\n%s", out)
	}
	if _, err := c.RunTool(ctx, "org.apache.hadoop.hbase.snapshot.ExportSnapshot", "-snapshot", "nosuch", "-copy-to", to); err == nil {
		t.Error("a tool that failed gave no error")
	}
	check(t, c.DeleteSnapshot(ctx, "tool"))
}

func nameNodeCalls(t *testing.T, c *servers.Cluster) {
	before, err := c.HDFS.Calls()
	check(t, err)
	out, err := c.RunTool(t.Context(), "org.apache.hadoop.fs.FsShell", "-mkdir", c.HDFS.URI()+"/made-for-counting")
	check(t, err)
	after, err := c.HDFS.Calls()
	check(t, err)
	counts := servers.CountCalls(after[len(before):], func(n servers.NameNodeCall) bool {
		return n.Path == "/made-for-counting" && n.User == c.HDFS.User() && !n.Time.IsZero() && n.Allowed
	})
	if counts["mkdirs"] != 1 {
		t.Errorf("calls %v; %s", counts, out)
	}
}

func regionServerEnds(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	names, err := c.RegionServers(ctx)
	check(t, err)
	if len(names) != 2 {
		t.Fatalf("region servers %v", names)
	}
	regions, err := c.Regions(ctx, "five")
	check(t, err)
	for _, r := range regions {
		check(t, c.MoveRegion(ctx, "five", r.Encoded, names[0]))
	}
	want := dump(t, c, "five", false)
	check(t, c.KillRegionServer(ctx, names[0]))
	check(t, servers.DiffDumps(want, dump(t, c, "five", false)))
	added, err := c.StartRegionServer(ctx)
	check(t, err)
	names, err = c.RegionServers(ctx)
	check(t, err)
	if len(names) != 2 || names[0] != added && names[1] != added {
		t.Errorf("region servers %v, added %s", names, added)
	}
}

func restarts(t *testing.T, c *servers.Cluster) {
	ctx := t.Context()
	want := dump(t, c, "five", false)
	_, err := c.Load(ctx, "one", servers.LoadSpec{Seed: 5, Rows: 50, ValueBytes: 5})
	check(t, err)
	unflushed := dump(t, c, "one", false)
	zookeeper, nameNode := c.ZooKeeper(), c.HDFS.Address()

	check(t, c.Restart(ctx))
	check(t, servers.DiffDumps(want, dump(t, c, "five", false)))
	check(t, servers.DiffDumps(unflushed, dump(t, c, "one", false)))

	check(t, c.Shutdown(ctx))
	check(t, c.HDFS.Restart(ctx))
	check(t, c.Restart(ctx))
	check(t, servers.DiffDumps(want, dump(t, c, "five", false)))
	if c.ZooKeeper() != zookeeper || c.HDFS.Address() != nameNode {
		t.Errorf("addresses changed: %s %s, were %s %s", c.ZooKeeper(), c.HDFS.Address(), zookeeper, nameNode)
	}
}

func TestSeparateRegionServersCanBeKilled(t *testing.T) {
	c := servers.ForTest(t).Cluster(servers.ClusterOptions{RegionServers: 2, Separate: true, WALDir: "/logs"})
	ctx := t.Context()
	check(t, c.CreateTable(ctx, servers.TableSpec{Name: "t", Families: servers.Families("f"), SplitKeys: servers.HexSplits(4)}))
	_, err := c.Load(ctx, "t", servers.LoadSpec{Rows: 100, ValueBytes: 10})
	check(t, err)
	want := dump(t, c, "t", false)
	names, err := c.RegionServers(ctx)
	check(t, err)
	if len(names) != 2 {
		t.Fatalf("region servers %v", names)
	}
	out, err := c.RunTool(ctx, "org.apache.hadoop.fs.FsShell", "-ls", c.WALDir()+"/WALs")
	check(t, err)
	for _, n := range names {
		if !strings.Contains(out, "/logs/WALs/"+n) {
			t.Errorf("no logs of %s:\n%s", n, out)
		}
	}
	check(t, c.KillRegionServer(ctx, names[1]))
	check(t, servers.DiffDumps(want, dump(t, c, "t", false)))
	if err := c.KillRegionServer(ctx, names[1]); err == nil {
		t.Error("killed the same region server twice")
	}
}
