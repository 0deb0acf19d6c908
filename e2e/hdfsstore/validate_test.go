package hdfsstore

import (
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// TestTargetValidate has the operator's own trial of a location say that backups
// are safe on HDFS, by both protocols, and leave nothing behind. It needs no
// cluster.
func TestTargetValidate(t *testing.T) {
	toolMade = true
	native, overHTTP := directory(t)+"/native", directory(t)+"/http"
	tool := cli.New(t, cli.Config{Clusters: map[string]cli.Cluster{"prod": {ZooKeeper: "127.0.0.1:1", Root: cluster.URI() + "/hbase", Target: "native"}}, Locations: map[string]map[string]any{
		"native": {"url": native, "user": cluster.User(), "block_size": "1MiB", "replication": 1},
		"http":   {"url": overHTTP, "user": cluster.User(), "webhdfs": []string{"http://" + cluster.HTTPAddress()}},
	}})
	for name, at := range map[string]string{"native": native, "http": overHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tool.Run(t.Context(), "target", "validate", name)
			if r.Code != 0 || !strings.Contains(r.Stdout, "backups are safe there") || strings.Contains(r.Stdout, "FAILED") {
				t.Error(r)
			}
			for obj, err := range openAt(t, at, hdfs.Config{User: cluster.User()}).List(t.Context(), "", storage.ListOptions{}) {
				if err != nil || obj.Key != "hbackup.json" {
					t.Errorf("left behind: %s, %v", obj.Key, err)
				}
			}
		})
	}
}
