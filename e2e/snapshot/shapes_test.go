package snapshot

import (
	"strings"
	"testing"

	"hbackup/e2e/servers"
)

// shape is a table in a state that makes a snapshot special.
type shape struct {
	table string
	make  func(t *testing.T, h *servers.HBase, table string)
}

// must ends the test at the first failing step of making a table.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes rows and flushes them, twice, so that there are two files per store.
func fill(t *testing.T, h *servers.HBase, table string, seed int64) {
	t.Helper()
	for i := range int64(2) {
		_, err := h.Load(t.Context(), table, servers.Mixed(seed+i, 120))
		must(t, err)
		must(t, h.Flush(t.Context(), table))
	}
}

// fillPart writes rows whose keys begin with the prefix.
func fillPart(t *testing.T, h *servers.HBase, table, prefix string) {
	t.Helper()
	load := servers.Mixed(7, 60)
	load.Prefix = prefix
	_, err := h.Load(t.Context(), table, load)
	must(t, err)
	must(t, h.Flush(t.Context(), table))
}

func create(t *testing.T, h *servers.HBase, table string, regions int, families ...servers.FamilySpec) {
	t.Helper()
	if len(families) == 0 {
		families = []servers.FamilySpec{{Name: "a", Versions: 3}, {Name: "b", Compression: "GZ", Encoding: "FAST_DIFF", KeepDeleted: "TRUE"}}
	}
	must(t, h.CreateTable(t.Context(), servers.TableSpec{Name: table, Families: families, SplitKeys: servers.HexSplits(regions)}))
}

func regions(t *testing.T, h *servers.HBase, table string) []servers.Region {
	t.Helper()
	list, err := h.Regions(t.Context(), table)
	must(t, err)
	return list
}

func split(t *testing.T, h *servers.HBase, table string, region int, at string) {
	t.Helper()
	_, err := h.Split(t.Context(), table, regions(t, h, table)[region].Encoded, []byte(at))
	must(t, err)
}

func merge(t *testing.T, h *servers.HBase, table string, first, last int) {
	t.Helper()
	var encoded []string
	for _, r := range regions(t, h, table)[first : last+1] {
		encoded = append(encoded, r.Encoded)
	}
	_, err := h.MergeRegions(t.Context(), table, encoded...)
	must(t, err)
}

// cloneOf makes the table as a clone of another shape's table.
func cloneOf(source string) func(*testing.T, *servers.HBase, string) {
	return func(t *testing.T, h *servers.HBase, table string) {
		name := "for-" + strings.ReplaceAll(table, ":", "-")
		must(t, h.Snapshot(t.Context(), source, name))
		must(t, h.CloneSnapshot(t.Context(), name, table))
		fillPart(t, h, table, "7")
	}
}

// shapes are made in this order, with compactions switched off.
var shapes = []shape{
	{"fx:plain", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 3)
		fill(t, h, table, 1)
		_, err := h.BulkLoad(t.Context(), table, servers.LoadSpec{Seed: 5, From: 1000, Rows: 50, Families: []string{"a", "b"}, ValueBytes: 10})
		must(t, err)
	}},
	{"fx:split", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 1)
		fill(t, h, table, 1)
		split(t, h, table, 0, "80000000")
		fillPart(t, h, table, "2")
	}},
	{"fx:merged", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 5)
		fill(t, h, table, 1)
		merge(t, h, table, 1, 2)
		merge(t, h, table, 2, 3)
		fillPart(t, h, table, "5")
	}},
	{"fx:mergedempty", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 4) // 0, 4, 8, c
		fillPart(t, h, table, "5")
		merge(t, h, table, 1, 2)
	}},
	{"fx:splittwice", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 1)
		fill(t, h, table, 1)
		split(t, h, table, 0, "80000000")
		must(t, h.SetCompaction(t.Context(), true))
		must(t, h.MajorCompact(t.Context(), table))
		must(t, h.ArchiveCompacted(t.Context()))
		must(t, h.SetCompaction(t.Context(), false))
		split(t, h, table, 1, "c0000000")
	}},
	{"fx:onesided", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 1)
		fillPart(t, h, table, "5")
		split(t, h, table, 0, "80000000")
	}},
	{"fx:cloneofsplit", cloneOf("fx:split")},
	{"fx:cloneofmerged", cloneOf("fx:merged")},
	{"fx:cloneofplain", cloneOf("fx:plain")},
	{"fx:mob", func(t *testing.T, h *servers.HBase, table string) {
		create(t, h, table, 1, servers.FamilySpec{Name: "a", Versions: 3}, servers.FamilySpec{Name: "m", MOB: true, MOBThreshold: 100})
		load := servers.LoadSpec{Seed: 3, Rows: 60, ValueBytes: 20, BigPercent: 30, BigBytes: 300}
		_, err := h.Load(t.Context(), table, load)
		must(t, err)
		must(t, h.Flush(t.Context(), table))
		split(t, h, table, 0, "80000000")
	}},
	{"fx:mobclone", cloneOf("fx:mob")},
}
