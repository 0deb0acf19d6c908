// Package peers lets HBase's own tools read what hbackup wrote: SnapshotInfo must
// find every file of an image, and ExportSnapshot must bring it into a cluster
// that has never seen the table, without hbackup. The ordinary tests do it with a
// location in a directory; those with the build tag peers over S3A as well, whose
// jars are 650 MB (make test-peers).
package peers

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// The source has its root in a directory; the other cluster, on HDFS, never
// sees the tables but through the tools.
var source, other *servers.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	defer cli.Cleanup()
	var err error
	if source, err = servers.StartCluster(ctx, servers.ClusterOptions{LocalRoot: true}); err != nil {
		panic(err)
	}
	defer source.Stop()
	if other, err = servers.StartCluster(ctx, servers.ClusterOptions{HBase: servers.EagerCleaners()}); err != nil {
		panic(err)
	}
	defer other.Stop()
	return m.Run()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestToolsReadADirectory is the ordinary test. At its end a file is cut short
// and another removed, to see that SnapshotInfo would have said so.
func TestToolsReadADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	remote := "file://" + dir + "/prod"
	images := toolsRead(t, cli.Dir(t, dir), remote, nil)
	t.Run("damage", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(dir, "prod/archive/data/peers/bulk/*/f/*"))
		check(t, err)
		if len(files) < 2 {
			t.Fatalf("files of the table: %v", files)
		}
		check(t, os.Chmod(files[0], 0o600))
		check(t, os.Truncate(files[0], 1000))
		check(t, os.Remove(files[1]))
		i := slices.IndexFunc(images, func(l imageLine) bool { return l.Table == "peers:bulk" })
		if out := info(t, nil, remote, images[i].Image); !complaint.MatchString(out) {
			t.Errorf("SnapshotInfo finds nothing wrong:\n%s", out)
		} else {
			t.Log(out)
		}
	})
}
