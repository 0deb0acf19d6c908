package faults

import (
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// TestClusterChangesDuringTheCopy stops a backup before its first file, or
// between two, and has HBase do what it may do at any time. The image must be
// that of the moment of the snapshot.
func TestClusterChangesDuringTheCopy(t *testing.T) {
	for i, c := range []struct {
		name, cluster, at string
		change            func(t *testing.T, table string)
	}{
		{"compaction, archive and cleaners", "prod", "backup.planned", func(t *testing.T, table string) {
			compact(t, table)
			clean(t)
		}},
		{"compaction between two files", "dir", "backup.file-copied#3", func(t *testing.T, table string) {
			compact(t, table)
			clean(t)
		}},
		{"a split whose parent is gone", "prod", "backup.file-copied#2", func(t *testing.T, table string) {
			_, err := cluster.Split(t.Context(), table, regions(t, table)[1].Encoded, []byte("80000000"))
			check(t, err)
			compact(t, table)
			clean(t)
			clean(t)
		}},
		{"a split with references", "dir", "backup.planned", func(t *testing.T, table string) {
			_, err := cluster.Split(t.Context(), table, regions(t, table)[0].Encoded, []byte("20000000"))
			check(t, err)
			clean(t)
		}},
		{"a merge", "prod", "backup.planned", func(t *testing.T, table string) {
			all := regions(t, table)
			_, err := cluster.MergeRegions(t.Context(), table, all[0].Encoded, all[1].Encoded)
			check(t, err)
			compact(t, table)
			clean(t)
			clean(t)
		}},
		{"regions move and rows are written", "dir", "backup.file-copied#1", func(t *testing.T, table string) {
			servers2, err := cluster.RegionServers(t.Context())
			check(t, err)
			for _, r := range regions(t, table) {
				for _, s := range servers2 {
					if s != r.Server {
						check(t, cluster.MoveRegion(t.Context(), table, r.Encoded, s))
						break
					}
				}
			}
			_, err = cluster.Load(t.Context(), table, servers.LoadSpec{Seed: 99, Rows: 200, ValueBytes: 20})
			check(t, err)
			check(t, cluster.Flush(t.Context(), table))
		}},
		{"the table is dropped", "prod", "backup.file-copied#4", func(t *testing.T, table string) {
			check(t, cluster.Drop(t.Context(), table))
			clean(t)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := toolOf(t, config(t))
			name := "faults:change" + string(rune('a'+i))
			table(t, name, int64(100+i))
			want := dump(t, name)
			gate := cli.NewGate(t, c.at)
			p := x.With(gate.Env()).Start(t, "-o", "json", "backup", "--cluster", c.cluster, "--tables", name)
			gate.Reached(t, p)
			c.change(t, name)
			gate.Open(t)
			id := backupOf(t, p.Wait())
			if left := ours(t); len(left) > 0 {
				t.Errorf("snapshots left: %q", left)
			}
			clean(t)
			x.OK(t, "verify", id)
			equal(t, x, id, name, want)
		})
	}
}

// TestSnapshotDeletedBySomebody deletes the snapshot under a backup. Nothing
// holds its files from then on, so nothing may be committed, whether or not a
// file was missed; the same request can be run again.
func TestSnapshotDeletedBySomebody(t *testing.T) {
	for i, c := range []struct {
		name, cluster, at string
		then              func(t *testing.T, table, snapshot string)
	}{
		{"before the manifest is used", "prod", "backup.snapshot-taken", func(*testing.T, string, string) {}},
		{"all files are still there", "dir", "backup.planned", func(*testing.T, string, string) {}},
		{"files are gone", "prod", "backup.file-copied#2", func(t *testing.T, table, _ string) {
			compact(t, table)
			clean(t)
		}},
		{"after the last file", "dir", "backup.files-copied", func(*testing.T, string, string) {}},
		{"another one has its name", "prod", "backup.files-copied", func(t *testing.T, table, snapshot string) {
			check(t, cluster.Snapshot(t.Context(), table, snapshot))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := toolOf(t, config(t))
			name := "faults:gone" + string(rune('a'+i))
			table(t, name, int64(200+i))
			want := dump(t, name)
			gate := cli.NewGate(t, c.at)
			args := []string{"-o", "json", "backup", "--cluster", c.cluster, "--tables", name, "--request-id", "gone"}
			p := x.With(gate.Env()).Start(t, args...)
			gate.Reached(t, p)
			all := ours(t)
			if len(all) != 1 {
				t.Fatalf("snapshots: %q", all)
			}
			check(t, cluster.DeleteSnapshot(t.Context(), all[0]))
			c.then(t, name, all[0])
			gate.Open(t)
			r := p.Wait()
			failure{14, []string{all[0], "deleted"}}.holds(t, r)
			if done := append(committed(t, s3Dir(t)), committed(t, fileDir(t))...); len(done) > 0 {
				t.Errorf("committed: %q", done)
			}
			if left := ours(t); len(left) > 0 {
				t.Errorf("snapshots left: %q", left)
			}
			if strings.Contains(c.name, "gone") {
				return // the table's raw cells are others now
			}
			equal(t, x, backupOf(t, x.Run(t.Context(), args...)), name, want)
		})
	}
}

func regions(t *testing.T, table string) []servers.Region {
	t.Helper()
	all, err := cluster.Regions(t.Context(), table)
	check(t, err)
	return all
}
