package hdfsstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hbackup/backup"
	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/internal/failpoint"
)

// hbase starts HBase on the HDFS of this package, with cleaners that delete at
// once.
func hbase(t *testing.T) *servers.Cluster {
	t.Helper()
	servers.ForTest(t)
	h, err := servers.StartHBase(t.Context(), servers.HBaseOptions{HDFS: cluster, Extra: servers.EagerCleaners()})
	must(t, err)
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &servers.Cluster{HBase: h, HDFS: cluster}
	// Raw cells are compared, and a compaction drops delete markers.
	must(t, c.SetCompaction(t.Context(), false))
	return c
}

// site is an HBase whose backups go to HDFS and, as "old", to a directory.
type site struct {
	*servers.Cluster
	*cli.Tool
	want map[string]servers.Dump // of the tables that were filled
}

func newSite(t *testing.T) *site {
	c := hbase(t)
	toolMade = true
	s := &site{Cluster: c, want: map[string]servers.Dump{}}
	s.Tool = cli.New(t, cli.Config{
		Clusters: map[string]cli.Cluster{"prod": cli.Of(c, "dfs", "dir"), "old": cli.Of(c, "dir", "dfs")},
		Locations: map[string]map[string]any{
			"dfs": {"url": directory(t), "user": cluster.User(), "block_size": "1MiB", "replication": 1},
			"dir": cli.Dir(t, t.TempDir()),
		},
	}, "HBACKUP_LEASE_TTL=6s")
	return s
}

// fill makes a table of several regions and files.
func (s *site) fill(t *testing.T, table string, seed int64, families ...servers.FamilySpec) {
	t.Helper()
	must(t, s.CreateTable(t.Context(), servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(4), Families: families}))
	load := servers.Mixed(seed, 1500)
	load.FlushEvery, load.BigPercent, load.BigBytes = 500, 10, 2000
	s.load(t, table, load)
}

// load adds cells, which become new files.
func (s *site) load(t *testing.T, table string, load servers.LoadSpec) {
	t.Helper()
	_, err := s.Load(t.Context(), table, load)
	must(t, err)
	must(t, s.Flush(t.Context(), table))
	s.want[table], err = s.Dump(t.Context(), table, true)
	must(t, err)
}

// restores checks that a backup gives every cell of the table back.
func (s *site) restores(t *testing.T, id, from, table string) {
	t.Helper()
	as := table + "_restored"
	s.OK(t, "restore", id, "--table", table, "--as", as, "--from-cluster", from, "--to-cluster", "prod")
	got, err := s.Dump(t.Context(), as, true)
	must(t, err)
	must(t, servers.DiffDumps(s.want[table], got))
	must(t, s.Drop(t.Context(), as))
}

// TestBackups backs up to HDFS and to a directory, by a switch of the target,
// and restores from both. Then a backup to HDFS is killed at each of its steps
// and gone on with.
func TestBackups(t *testing.T) {
	s := newSite(t)
	tables := []string{"mixed", "dfs:mob"}
	s.fill(t, tables[0], 40, servers.FamilySpec{Name: "a", Versions: 3}, servers.FamilySpec{Name: "b"})
	s.fill(t, tables[1], 41, servers.FamilySpec{Name: "f", MOB: true, MOBThreshold: 500})
	for _, name := range []string{"prod", "old", "prod"} {
		id := s.Backup(t, name, tables...)
		s.OK(t, "verify", id)
		for _, table := range tables {
			s.restores(t, id, name, table)
		}
	}
	for n, step := range backup.Steps {
		s.load(t, tables[1], servers.Mixed(int64(100+n), 100)) // so that there is something to copy
		s.killedAt(t, step, fmt.Sprintf("kill-%d", n), tables)
	}
}

// killedAt kills a backup at a step and runs it again to its end. There is one backup, and it is whole.
func (s *site) killedAt(t *testing.T, step failpoint.Step, request string, tables []string) {
	t.Helper()
	args := []string{"-o", "json", "backup", "--cluster", "prod", "--tables", strings.Join(tables, ","), "--request-id", request}
	times := ""
	if step == backup.StepFileCopied {
		times = "#3"
	}
	if r := s.With("HBACKUP_FAILPOINT="+string(step)+times).Run(t.Context(), args...); !r.Killed {
		t.Fatalf("not killed at %s: %s", step, r)
	}
	var first, again struct {
		ID    string `json:"backup"`
		State string `json:"state"`
	}
	must(t, json.Unmarshal([]byte(s.OK(t, args...)), &first))
	must(t, json.Unmarshal([]byte(s.OK(t, args...)), &again))
	if first.ID == "" || first.State != "complete" || again != first {
		t.Fatalf("killed at %s, then: %+v, then: %+v", step, first, again)
	}
	s.OK(t, "verify", first.ID)
	s.restores(t, first.ID, "prod", tables[1])
}
