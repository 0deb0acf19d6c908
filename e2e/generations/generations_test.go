package generations

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// The table whose generations are backed up.
const table = "gen:orders"

var families = []servers.FamilySpec{
	{Name: "a", Versions: 3, Compression: "GZ", Bloom: "ROWCOL"},
	{Name: "b", Versions: 2, MOB: true, MOBThreshold: 500},
	{Name: "c", Encoding: "FAST_DIFF"},
}

// generation is what happens to the table before a backup.
type generation struct {
	name       string
	live       func(t *testing.T)
	disabled   bool // while it is backed up
	nothingNew bool // no file that was not there before
}

var generations = []generation{
	{name: "made and filled", live: func(t *testing.T) {
		check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(3), Families: families}))
		write(t, 1, 450, 150)
	}},
	{name: "nothing", live: func(*testing.T) {}, nothingNew: true},
	{name: "writes and deletes", live: func(t *testing.T) { write(t, 2, 300, 100) }},
	{name: "a minor compaction", live: func(t *testing.T) {
		compacting(t, func() { check(t, cluster.Compact(t.Context(), table)) })
	}},
	{name: "a split", live: func(t *testing.T) {
		_, err := cluster.Split(t.Context(), table, regions(t)[0].Encoded, nil)
		check(t, err)
		write(t, 3, 300, 0)
	}},
	{name: "a major compaction, after which the parent goes", live: func(t *testing.T) {
		compacting(t, func() { check(t, cluster.MajorCompact(t.Context(), table)) })
	}},
	{name: "a merge of regions", live: func(t *testing.T) {
		all := regions(t)
		_, err := cluster.MergeRegions(t.Context(), table, all[1].Encoded, all[2].Encoded)
		check(t, err)
		write(t, 4, 200, 0)
	}},
	{name: "a bulk load", live: func(t *testing.T) {
		_, err := cluster.BulkLoad(t.Context(), table, servers.LoadSpec{Seed: 5, From: 100, Rows: 500, Families: []string{"a", "c"}, ValueBytes: 30})
		check(t, err)
	}},
	{name: "another schema", live: func(t *testing.T) {
		changed := []servers.FamilySpec{{Name: "a", Versions: 5, TTL: 86400 * 3650, Compression: "NONE"}, families[1], {Name: "d"}}
		check(t, cluster.ModifyTable(t.Context(), servers.TableSpec{Name: table, Families: changed}))
		write(t, 6, 200, 0)
	}},
	{name: "disabled", live: func(t *testing.T) { write(t, 7, 100, 0) }, disabled: true},
	{name: "truncated", live: func(t *testing.T) {
		check(t, cluster.Truncate(t.Context(), table, true))
		write(t, 8, 200, 0)
	}},
	{name: "dropped and made anew", live: func(t *testing.T) {
		check(t, cluster.Drop(t.Context(), table))
		check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(2), Families: families[:2]}))
		write(t, 9, 300, 0)
	}},
	{name: "dropped and made anew, empty", live: func(t *testing.T) {
		check(t, cluster.Drop(t.Context(), table))
		check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: table, Families: families}))
	}, nothingNew: true},
	{name: "filled again", live: func(t *testing.T) { write(t, 10, 200, 0) }},
}

// write puts cells of all kinds, big ones too, and flushes them; after each so many
// rows as well when flushEvery is set.
func write(t *testing.T, seed, rows int64, flushEvery int) {
	t.Helper()
	load := servers.Mixed(seed, rows)
	load.FlushEvery, load.BigPercent, load.BigBytes = flushEvery, 10, 2000
	_, err := cluster.Load(t.Context(), table, load)
	check(t, err)
	check(t, cluster.Flush(t.Context(), table))
}

func regions(t *testing.T) []servers.Region {
	t.Helper()
	all, err := cluster.Regions(t.Context(), table)
	check(t, err)
	return all
}

// compacting lets the table be compacted meanwhile, and by nobody else.
func compacting(t *testing.T, do func()) {
	t.Helper()
	check(t, cluster.SetCompaction(t.Context(), true))
	do()
	check(t, cluster.SetCompaction(t.Context(), false))
}

// TestGenerations backs a table up after each thing that can happen to it, into one
// location. Each backup writes the files that are new, to the byte, and manifests.
// At the end every generation is restored and compared, cell by cell.
func TestGenerations(t *testing.T) {
	servers.ForTest(t)
	dir := t.TempDir() + "/backups"
	x := cli.New(t, cli.Config{
		Clusters:  map[string]cli.Cluster{"prod": cli.Of(cluster, "dir")},
		Locations: map[string]map[string]any{"dir": cli.Dir(t, dir)},
	})
	// Raw cells are compared, and compactions drop some.
	check(t, cluster.SetCompaction(t.Context(), false))
	type made struct {
		generation
		backup       backupDocument
		raw, visible servers.Dump
	}
	var all []made
	for n, g := range generations {
		if !t.Run(fmt.Sprintf("%02d %s", n, g.name), func(t *testing.T) {
			g.live(t)
			m := made{generation: g, raw: dump(t, table, true), visible: dump(t, table, false)}
			chores(t)
			needs := storeFiles(t)
			before := objects(t, dir)
			if g.disabled {
				check(t, cluster.Disable(t.Context(), table))
			}
			m.backup = backupOf(t, x.Run(t.Context(), "-o", "json", "backup", "--cluster", "prod", "--tables", table), 0)
			if g.disabled {
				check(t, cluster.Enable(t.Context(), table))
			}
			compareWritten(t, m.backup, needs, before, objects(t, dir))
			if (m.backup.CopiedFiles == 0) != g.nothingNew {
				t.Errorf("%d files were copied", m.backup.CopiedFiles)
			}
			x.OK(t, "verify", m.backup.ID)
			all = append(all, m)
		}) {
			t.FailNow()
		}
	}
	for n, m := range all {
		as := fmt.Sprintf("gen:restored_%02d", n)
		if r := x.Run(t.Context(), "restore", m.backup.ID, "--table", table, "--as", as); r.Code != 0 {
			t.Errorf("%s: %s", m.name, r)
			continue
		}
		for _, err := range []error{servers.DiffDumps(m.raw, dump(t, as, true)), servers.DiffDumps(m.visible, dump(t, as, false))} {
			if err != nil {
				t.Errorf("%02d %s: %v", n, m.name, err)
			}
		}
		check(t, cluster.Drop(t.Context(), as))
	}
	ofASnapshot(t, x)
	last := all[len(all)-1]
	movedAway(t, dir, last.backup.ID, last.raw)
}

// ofASnapshot backs up a snapshot that somebody has taken of a table that is gone by
// now.
func ofASnapshot(t *testing.T, x *cli.Tool) {
	t.Helper()
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: "gen:short", SplitKeys: servers.HexSplits(2), Families: families[:2]}))
	_, err := cluster.Load(t.Context(), "gen:short", servers.Mixed(20, 100))
	check(t, err)
	check(t, cluster.Flush(t.Context(), "gen:short"))
	raw := dump(t, "gen:short", true)
	check(t, cluster.Snapshot(t.Context(), "gen:short", "theirs"))
	check(t, cluster.Drop(t.Context(), "gen:short"))
	b := backupOf(t, x.Run(t.Context(), "-o", "json", "backup", "--cluster", "prod", "--from-snapshot", "theirs"), 0)
	x.OK(t, "restore", b.ID, "--table", "gen:short", "--as", "gen:short_again")
	check(t, servers.DiffDumps(raw, dump(t, "gen:short_again", true)))
	left, err := cluster.ListSnapshots(t.Context())
	check(t, err)
	if len(left) != 1 || left[0].Name != "theirs" {
		t.Errorf("the snapshots are %+v", left)
	}
	check(t, cluster.DeleteSnapshot(t.Context(), "theirs"))
}

// movedAway moves the directory of a location, whose cluster has in its history another
// one that is not there: everything goes on, and what cannot be read is said.
func movedAway(t *testing.T, dir, id string, raw servers.Dump) {
	t.Helper()
	moved := t.TempDir() + "/elsewhere/backups"
	check(t, os.MkdirAll(filepath.Dir(moved), 0o700))
	check(t, os.Rename(dir, moved))
	x := cli.New(t, cli.Config{
		Clusters:  map[string]cli.Cluster{"prod": cli.Of(cluster, "dir", "old")},
		Locations: map[string]map[string]any{"dir": {"url": "file://" + moved}, "old": {"url": "file://" + dir}},
	})
	if r := x.Run(t.Context(), "list"); r.Code != 3 || !strings.Contains(r.Stdout, id) || !strings.Contains(r.Stderr, "old") {
		t.Errorf("want exit code 3, the backup and a word about the other location: %s", r)
	}
	b := backupOf(t, x.Run(t.Context(), "-o", "json", "backup", "--cluster", "prod", "--tables", table), 0)
	if b.CopiedFiles != 0 {
		t.Errorf("%d files were copied again", b.CopiedFiles)
	}
	x.OK(t, "verify", id)
	x.OK(t, "restore", id, "--table", table, "--as", "gen:moved")
	check(t, servers.DiffDumps(raw, dump(t, "gen:moved", true)))
}

func dump(t *testing.T, table string, raw bool) servers.Dump {
	t.Helper()
	d, err := cluster.Dump(t.Context(), table, raw)
	check(t, err)
	return d
}

// chores has HBase clear away what compactions, splits and merges have left.
func chores(t *testing.T) {
	t.Helper()
	check(t, cluster.ArchiveCompacted(t.Context()))
	_, err := cluster.RunCatalogJanitor(t.Context())
	check(t, err)
	_, err = cluster.RunCleaner(t.Context())
	check(t, err)
}

var (
	storeFile = regexp.MustCompile(`^[0-9a-f]{32,}(_SeqId_[0-9]+_|_[0-9a-f]{32})?$`)
	reference = regexp.MustCompile(`^([0-9a-f]{32}(?:_SeqId_[0-9]+_)?)\.([0-9a-f]{32})$`)
)

// storeFiles looks into HBase's directories, which nothing of hbackup has a part in,
// for the files of the table: by the key that each has in a location, with its size.
func storeFiles(t *testing.T) map[string]int64 {
	t.Helper()
	fs, out := hdfs(t), map[string]int64{}
	const of = "data/gen/orders"
	for _, root := range []string{"/hbase/" + of, "/hbase/mobdir/" + of} {
		regions, err := fs.ReadDir(t.Context(), root)
		if hbackup.IsKind(err, hbackup.KindNotFound) {
			continue
		}
		check(t, err)
		for _, region := range regions {
			if !region.Dir || strings.HasPrefix(region.Name, ".") {
				continue
			}
			stores, err := fs.ReadDir(t.Context(), region.Path)
			check(t, err)
			for _, store := range stores {
				if !store.Dir || strings.HasPrefix(store.Name, ".") || store.Name == "recovered.edits" {
					continue
				}
				files, err := fs.ReadDir(t.Context(), store.Path)
				check(t, err)
				for _, f := range files {
					ref := reference.FindStringSubmatch(f.Name)
					switch {
					case storeFile.MatchString(f.Name):
						out[path.Join("prod/archive", of, region.Name, store.Name, f.Name)] = f.Size
					case ref != nil:
						key := path.Join(of, ref[2], store.Name, ref[1])
						info, err := fs.Stat(t.Context(), "/hbase/"+key)
						if hbackup.IsKind(err, hbackup.KindNotFound) {
							info, err = fs.Stat(t.Context(), "/hbase/archive/"+key)
						}
						check(t, err)
						out["prod/archive/"+key] = info.Size
					case !f.Dir && !strings.HasPrefix(f.Name, "."):
						t.Fatalf("what is %s?", f.Path)
					}
				}
			}
		}
	}
	return out
}

// compareWritten fails unless the backup has written the files that it needs and the
// location had not, and beside them the manifests of one image and what a run leaves.
func compareWritten(t *testing.T, b backupDocument, needs, before, after map[string]int64) {
	t.Helper()
	written := map[string]int64{}
	for key, size := range after {
		if old, there := before[key]; !there {
			written[key] = size
		} else if old != size {
			t.Errorf("%s had %d bytes and has %d", key, old, size)
		}
	}
	for key := range before {
		if _, there := after[key]; !there && !strings.HasPrefix(key, "prod/leases/") {
			t.Errorf("%s is gone", key)
		}
	}
	want := map[string]int64{}
	for key, size := range needs {
		if _, there := before[key]; !there {
			want[key] = size
		}
	}
	var bytes int64
	got := map[string]int64{}
	for key, size := range written {
		if strings.HasPrefix(key, "prod/archive/") {
			got[key] = size
			bytes += size
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("written\n%s\nwanted\n%s", lines(got), lines(want))
	}
	if b.CopiedFiles != len(want) || b.CopiedBytes != bytes {
		t.Errorf("the backup says %d files, %d bytes, of %d and %d", b.CopiedFiles, b.CopiedBytes, len(want), bytes)
	}
	image := b.Tables[0].Image
	manifests := []string{
		"prod/.hbase-snapshot/" + image + "/data.manifest", "prod/.hbase-snapshot/" + image + "/.snapshotinfo",
		"prod/images/gen/orders/" + image + ".image", "prod/backups/" + b.ID + ".json",
		"prod/jobs/" + b.Request + "/job.json", "prod/jobs/" + b.Request + "/done.json",
	}
	for _, key := range manifests {
		if written[key] == 0 {
			t.Errorf("%s is not written", key)
		}
	}
	for key := range written {
		switch {
		case strings.HasPrefix(key, "prod/archive/"), slices.Contains(manifests, key):
		case strings.HasPrefix(key, "prod/leases/"):
		case key == "hbackup.json" && len(before) == 0:
		default:
			t.Errorf("%s is written as well", key)
		}
	}
}

func lines(m map[string]int64) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "  %s %d\n", key, m[key])
	}
	return b.String()
}
