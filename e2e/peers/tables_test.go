package peers

import (
	"regexp"
	"testing"

	"hbackup/e2e/servers"
)

// A table of each kind whose files are not simply its own HFiles. make fills it
// so that nothing is in memory; shows matches what SnapshotInfo prints only of a
// table of that kind.
type kind struct {
	name, table string
	shows       *regexp.Regexp
	make        func(t *testing.T, table string)
}

var kinds = []kind{
	{"MOB", "peers:mob", regexp.MustCompile(`/f/[0-9a-f]{72}_[0-9a-f]{32} `), func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(2), servers.FamilySpec{Name: "f", MOB: true, MOBThreshold: 1000, Versions: 2}, servers.FamilySpec{Name: "g"})
		load := servers.Mixed(1, 300)
		load.BigPercent, load.BigBytes, load.FlushEvery = 30, 5000, 150
		fill(t, table, load)
	}},
	{"a clone that reads another table's files", "peers:clone", regexp.MustCompile(`/f/peers=original=[0-9a-f]{32}-[0-9a-f]{32} `), func(t *testing.T, table string) {
		create(t, "peers:original", servers.HexSplits(2), servers.FamilySpec{Name: "f", Versions: 2})
		fill(t, "peers:original", servers.Mixed(2, 600))
		check(t, source.Snapshot(t.Context(), "peers:original", "for_clone"))
		check(t, source.CloneSnapshot(t.Context(), "for_clone", table))
		check(t, source.DeleteSnapshot(t.Context(), "for_clone"))
		fill(t, table, servers.Mixed(20, 100))
	}},
	// Two files of the parent, to which the daughters refer, and two of each daughter.
	{"a split not yet compacted", "peers:split", regexp.MustCompile(`(?m)^6 HFiles `), func(t *testing.T, table string) {
		create(t, table, nil, servers.FamilySpec{Name: "f", Versions: 2}, servers.FamilySpec{Name: "g"})
		fill(t, table, servers.Mixed(3, 800))
		all, err := source.Regions(t.Context(), table)
		check(t, err)
		_, err = source.Split(t.Context(), table, all[0].Encoded, nil)
		check(t, err)
		fill(t, table, servers.Mixed(30, 200))
	}},
	{"a bulk load", "peers:bulk", regexp.MustCompile(`_SeqId_[0-9]+_ `), func(t *testing.T, table string) {
		create(t, table, servers.HexSplits(2), servers.FamilySpec{Name: "f"})
		fill(t, table, servers.Mixed(4, 300))
		for i := range 2 {
			_, err := source.BulkLoad(t.Context(), table, servers.LoadSpec{Seed: 4, From: int64(100 + 200*i), Rows: 300, Families: []string{"f"}, ValueBytes: 30})
			check(t, err)
		}
	}},
}

func create(t *testing.T, table string, splits [][]byte, families ...servers.FamilySpec) {
	t.Helper()
	check(t, source.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: splits, Families: families}))
}

func fill(t *testing.T, table string, load servers.LoadSpec) {
	t.Helper()
	_, err := source.Load(t.Context(), table, load)
	check(t, err)
	check(t, source.Flush(t.Context(), table))
}

// dumps of the tables, made once and shared by the tests.
var dumps map[string]servers.Dump

// makeTables makes all kinds at the first call. No compaction changes them: it
// would take the references away and drop what a raw scan shows.
func makeTables(t *testing.T) []string {
	t.Helper()
	var tables []string
	for _, k := range kinds {
		tables = append(tables, k.table)
	}
	if dumps != nil {
		return tables
	}
	check(t, source.SetCompaction(t.Context(), false))
	check(t, other.SetCompaction(t.Context(), false))
	made := map[string]servers.Dump{}
	for _, k := range kinds {
		k.make(t, k.table)
		d, err := source.Dump(t.Context(), k.table, true)
		check(t, err)
		made[k.table] = d
	}
	dumps = made
	return tables
}
