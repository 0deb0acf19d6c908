// Package roundtrip backs up and restores every kind of table on a real HBase
// and compares every cell, then lets the restored table live on.
package roundtrip

import (
	"context"
	"os"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

const bucket = "backups"

// One cluster with cleaners that delete at once, and one S3 gateway, serve all
// tests of the package.
var (
	cluster *servers.Cluster
	s3      *servers.S3
	dirRoot string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	var err error
	if dirRoot, err = os.MkdirTemp("", "hbackup-roundtrip-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dirRoot)
	defer cli.Cleanup()
	if cluster, err = servers.StartCluster(ctx, servers.ClusterOptions{RegionServers: 2, HBase: servers.EagerCleaners()}); err != nil {
		panic(err)
	}
	defer cluster.Stop()
	if s3, err = servers.StartS3(ctx, servers.S3Options{Buckets: []string{bucket}}); err != nil {
		panic(err)
	}
	defer s3.Stop()
	return m.Run()
}

// tool gives hbackup with the cluster under two names: "prod" backs up to S3,
// "dir" to a directory. Every test has locations of its own.
func tool(t *testing.T) *cli.Tool { return toolOf(t, nil) }

// toolOf knows a second cluster as well, "other".
func toolOf(t *testing.T, second *servers.Cluster) *cli.Tool {
	t.Helper()
	clusters := map[string]cli.Cluster{"prod": cli.Of(cluster, "s3"), "dir": cli.Of(cluster, "file")}
	if second != nil {
		clusters["other"] = cli.Of(second, "s3")
	}
	prefix := strings.ToLower(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	return cli.New(t, cli.Config{
		Clusters:  clusters,
		Locations: map[string]map[string]any{"s3": cli.S3(s3, bucket, prefix), "file": cli.Dir(dirRoot + "/" + prefix)},
	}, cli.Keys(s3)...)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dump(t *testing.T, c *servers.Cluster, table string, raw bool) servers.Dump {
	t.Helper()
	d, err := c.Dump(t.Context(), table, raw)
	check(t, err)
	return d
}

// noneLeft fails when hbackup has left anything on the cluster.
func noneLeft(t *testing.T, c *servers.Cluster) {
	t.Helper()
	all, err := c.ListSnapshots(t.Context())
	check(t, err)
	for _, s := range all {
		if strings.HasPrefix(s.Name, "hbackup") {
			t.Errorf("the snapshot %s is still on the cluster", s.Name)
		}
	}
	clean, err := c.RunCleaner(t.Context())
	check(t, err)
	if !clean {
		t.Error("something stops the cluster's cleaners")
	}
}
