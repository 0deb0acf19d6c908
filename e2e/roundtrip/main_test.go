// Package roundtrip backs up and restores every kind of table on a real HBase
// and compares every cell, then lets the restored table live on.
package roundtrip

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/storage/gcs/gcstest"
)

const bucket = "backups"

// One cluster with cleaners that delete at once, one S3 gateway, and the in-repo
// server for Google Cloud Storage serve all tests of the package. HDFS is the
// cluster's own.
var (
	cluster *servers.Cluster
	s3      *servers.S3
	gcs     *gcstest.Server
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
	if gcs, err = gcstest.Start("", gcstest.Options{Buckets: []string{bucket}}); err != nil {
		panic(err)
	}
	defer gcs.Close()
	return m.Run()
}

// tool gives hbackup with the cluster under four names: "prod" backs up to S3,
// and each of gcs, hdfs and file to the kind of location of that name. Every test
// has locations of its own.
func tool(t *testing.T) *cli.Tool { return toolOf(t, nil) }

// toolOf knows a second cluster as well, "other".
func toolOf(t *testing.T, second *servers.Cluster) *cli.Tool {
	t.Helper()
	places := locations(t)
	clusters := map[string]cli.Cluster{"prod": cli.Of(cluster, "s3")}
	for _, name := range []string{"gcs", "hdfs", "file"} {
		clusters[name] = cli.Of(cluster, name)
	}
	if second != nil {
		clusters["other"] = cli.Of(second, "s3")
	}
	return cli.New(t, cli.Config{Clusters: clusters, Locations: places}, cli.Keys(s3)...)
}

// locations gives a place of the test's own of each kind.
func locations(t *testing.T) map[string]map[string]any {
	t.Helper()
	prefix := strings.ToLower(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	return map[string]map[string]any{
		"s3":   cli.S3(s3, bucket, prefix),
		"gcs":  cli.GCS(gcs.Endpoint(), bucket, prefix),
		"hdfs": cli.HDFS(cluster.HDFS, "/backups/"+prefix),
		"file": cli.Dir(t, dirRoot+"/"+prefix),
	}
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

// noneLeft fails when hbackup has left anything on the cluster, or anything stops
// its cleaners.
func noneLeft(t *testing.T, x *cli.Tool, name string) {
	t.Helper()
	var doc struct {
		Items []struct{ Name, Status, Detail string } `json:"items"`
	}
	r := x.Run(t.Context(), "-o", "json", "check", "--cluster", name)
	check(t, json.Unmarshal([]byte(r.Stdout), &doc))
	seen := 0
	for _, item := range doc.Items {
		if item.Name == "snapshots" || item.Name == "cleaners" {
			seen++
			if item.Status != "OK" {
				t.Errorf("%s: %s: %s", item.Name, item.Status, item.Detail)
			}
		}
	}
	if seen != 2 {
		t.Errorf("check says nothing of snapshots or cleaners: %s", r)
	}
}
