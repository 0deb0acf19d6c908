// Package restore restores on a real HBase while things go wrong: the process is
// killed at each of its steps, the cluster's cleaners run without pause, others
// get in the way.
package restore

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
)

// One cluster with cleaners that delete at once serves all tests of the package.
var (
	cluster *servers.Cluster
	dir     string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	var err error
	if dir, err = os.MkdirTemp("", "hbackup-restore-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	defer cli.Cleanup()
	if cluster, err = servers.StartCluster(ctx, servers.ClusterOptions{HBase: servers.EagerCleaners()}); err != nil {
		panic(err)
	}
	defer cluster.Stop()
	// Raw cells are compared, and a compaction of the restored table drops delete markers.
	if err := cluster.SetCompaction(ctx, false); err != nil {
		panic(err)
	}
	return m.Run()
}

// tool gives hbackup with a location of the test's own.
func tool(t *testing.T) *cli.Tool {
	t.Helper()
	return cli.New(t, cli.Config{
		Clusters:  map[string]cli.Cluster{"prod": cli.Of(cluster, "dir")},
		Locations: map[string]map[string]any{"dir": cli.Dir(t, path.Join(dir, t.Name()))},
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dump(t *testing.T, table string) servers.Dump {
	t.Helper()
	d, err := cluster.Dump(t.Context(), table, true)
	check(t, err)
	return d
}

// snapshots gives the names of the snapshots of restores, complete or not, as
// they lie in the root directory.
func snapshots(t *testing.T) []string { return list(t, ".hbase-snapshot", "hbackup-restore.") }

// staged gives the staging places of restores.
func staged(t *testing.T) []string { return list(t, "archive/data/hbk", "") }

func list(t *testing.T, dir, prefix string) []string {
	t.Helper()
	entries, err := files(t).ReadDir(t.Context(), path.Join("/hbase", dir))
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	check(t, err)
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name, prefix) {
			out = append(out, e.Name)
		}
	}
	return out
}

// files gives the cluster's file system for the time of the test.
func files(t *testing.T) rootfs.FS {
	t.Helper()
	fs, err := rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{cluster.HDFS.Address()}, User: cluster.HDFS.User()})
	check(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs
}

// clean runs the cluster's cleaners and says whether they do their work: whether
// a file that nobody needs is gone.
func clean(t *testing.T) bool {
	t.Helper()
	fs := files(t)
	bait := fmt.Sprintf("/hbase/archive/data/bait/t/%032x/f/%032x", time.Now().UnixNano(), time.Now().UnixNano())
	check(t, fs.MkdirAll(t.Context(), path.Dir(bait)))
	w, err := fs.Create(t.Context(), bait)
	check(t, err)
	check(t, w.Close())
	_, err = cluster.RunCleaner(t.Context())
	check(t, err)
	_, err = fs.Stat(t.Context(), bait)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return true
	}
	check(t, err)
	return false
}
