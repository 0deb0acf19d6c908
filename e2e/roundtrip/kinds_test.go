package roundtrip

import (
	"fmt"
	"strings"
	"testing"

	"hbackup/e2e/servers"
)

// kind is a table with something special, made so that nothing is in memory and
// no compaction changes it before the backup.
type kind struct {
	name  string
	table string
	make  func(t *testing.T, table string)
	once  bool // it is costly, and nothing of it depends on the kind of location
}

const legal = "every_legal:aZ09_.-_azAZ.x-1"

var kinds = []kind{
	{"versions, deletes, TTLs and tags", "rt:mixed", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(3),
			servers.FamilySpec{Name: "a", Versions: 5, KeepDeleted: "TRUE", Bloom: "ROWCOL"},
			servers.FamilySpec{Name: "b", Versions: 3, TTL: 86400 * 3650, Bloom: "ROW"},
			servers.FamilySpec{Name: "c", Bloom: "NONE", BlockSize: 4096})
		load := servers.Mixed(1, 3000)
		load.FlushEvery = 1000
		fill(t, table, load)
	}, false},
	{"every codec", "rt:codecs", func(t *testing.T, table string) {
		var fs []servers.FamilySpec
		for _, codec := range []string{"NONE", "GZ", "SNAPPY", "ZSTD"} {
			fs = append(fs, servers.FamilySpec{Name: strings.ToLower(codec), Compression: codec, Versions: 2})
		}
		create(t, table, nil, fs...)
		fill(t, table, servers.Mixed(2, 800))
	}, false},
	{"every encoding", "rt:encodings", func(t *testing.T, table string) {
		var fs []servers.FamilySpec
		for _, encoding := range []string{"NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"} {
			fs = append(fs, servers.FamilySpec{Name: strings.ToLower(encoding), Encoding: encoding, Versions: 2})
		}
		create(t, table, nil, fs...)
		fill(t, table, servers.Mixed(3, 800))
	}, false},
	{"MOB", "rt:mob", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(2), servers.FamilySpec{Name: "f", MOB: true, MOBThreshold: 1000, Versions: 2}, servers.FamilySpec{Name: "g"})
		load := servers.Mixed(4, 400)
		load.BigPercent, load.BigBytes, load.FlushEvery = 30, 5000, 200
		fill(t, table, load)
	}, false},
	{"a split not yet compacted", "rt:split", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(2), servers.FamilySpec{Name: "f", Versions: 2}, servers.FamilySpec{Name: "g"})
		fill(t, table, servers.Mixed(5, 1500))
		_, err := cluster.Split(t.Context(), table, regions(t, table)[0].Encoded, nil)
		check(t, err)
		fill(t, table, servers.Mixed(50, 300)) // files of the daughters' own
	}, false},
	{"a merge not yet compacted", "rt:merge", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(4), servers.FamilySpec{Name: "f", Versions: 2})
		fill(t, table, servers.Mixed(6, 1500))
		all := regions(t, table)
		_, err := cluster.MergeRegions(t.Context(), table, all[1].Encoded, all[2].Encoded)
		check(t, err)
		fill(t, table, servers.Mixed(60, 300))
	}, false},
	{"a clone that reads another table's files", "rt:clone", func(t *testing.T, table string) {
		create(t, "rt:original", servers.HexSplits(2), servers.FamilySpec{Name: "f", Versions: 2})
		fill(t, "rt:original", servers.Mixed(7, 1000))
		check(t, cluster.Snapshot(t.Context(), "rt:original", "for_clone"))
		check(t, cluster.CloneSnapshot(t.Context(), "for_clone", table))
		check(t, cluster.DeleteSnapshot(t.Context(), "for_clone"))
		fill(t, table, servers.Mixed(70, 200))
	}, false},
	{"a clone that was split", "rt:clonesplit", func(t *testing.T, table string) {
		create(t, "rt:original2", nil, servers.FamilySpec{Name: "f"})
		fill(t, "rt:original2", servers.Mixed(8, 1000))
		check(t, cluster.Snapshot(t.Context(), "rt:original2", "for_clone2"))
		check(t, cluster.CloneSnapshot(t.Context(), "for_clone2", table))
		check(t, cluster.DeleteSnapshot(t.Context(), "for_clone2"))
		_, err := cluster.Split(t.Context(), table, regions(t, table)[0].Encoded, nil)
		check(t, err)
	}, false},
	{"a bulk load", "rt:bulk", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(2), servers.FamilySpec{Name: "f"}, servers.FamilySpec{Name: "g"})
		fill(t, table, servers.Mixed(9, 500))
		for i := range 2 {
			_, err := cluster.BulkLoad(t.Context(), table, servers.LoadSpec{Seed: 9, From: int64(100 + 300*i), Rows: 500, Families: []string{"f", "g"}, ValueBytes: 30})
			check(t, err)
		}
	}, false},
	{"an empty region", "rt:hole", func(t *testing.T, table string) {
		create(t, table, [][]byte{[]byte("p"), []byte("q")}, servers.FamilySpec{Name: "f"})
		fill(t, table, servers.LoadSpec{Seed: 10, Rows: 300, Prefix: "q", ValueBytes: 20})
	}, false},
	{"an empty table", "rt:empty", func(t *testing.T, table string) { create(t, table, nil, servers.FamilySpec{Name: "f"}) }, false},
	{"200 regions", "rt:many", func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(200), servers.FamilySpec{Name: "f"})
		fill(t, table, servers.LoadSpec{Seed: 11, Rows: 2000, ValueBytes: 20})
	}, true},
	{"a name with every legal character", legal, func(t *testing.T, table string) {
		create(t, table, nil, servers.FamilySpec{Name: "f-ä_1.x"})
		fill(t, table, servers.LoadSpec{Seed: 12, Rows: 100, ValueBytes: 20})
	}, false},
	{"the default name space", "plain", func(t *testing.T, table string) {
		create(t, table, nil, servers.FamilySpec{Name: "f"})
		fill(t, table, servers.LoadSpec{Seed: 13, Rows: 100, ValueBytes: 20})
	}, false},
}

func create(t *testing.T, table string, splits [][]byte, families ...servers.FamilySpec) {
	t.Helper()
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: splits, Families: families}))
}

func fill(t *testing.T, table string, load servers.LoadSpec) {
	t.Helper()
	_, err := cluster.Load(t.Context(), table, load)
	check(t, err)
	check(t, cluster.Flush(t.Context(), table))
}

func regions(t *testing.T, table string) []servers.Region {
	t.Helper()
	all, err := cluster.Regions(t.Context(), table)
	check(t, err)
	return all
}

func restoredName(table, suffix string) string { return fmt.Sprintf("%s_%s", table, suffix) }
