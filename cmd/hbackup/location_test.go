package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hbackup/catalog"
	"hbackup/check"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/prefixed"
)

// A location in Google Cloud Storage is opened as the configuration says and
// passes the check of a target.
func TestLocationInGoogleCloudStorage(t *testing.T) {
	server, err := gcstest.Start("", gcstest.Options{Buckets: []string{"backups"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file := filepath.Join(t.TempDir(), "hbackup.yaml")
	text := fmt.Sprintf(`version: 1
clusters:
  prod: {registry: {zookeeper: [zk1]}, root: "hdfs://nn1:8020/hbase", target: main}
locations:
  main: {url: "gs://backups/hbase", endpoint: %q, storage_class: NEARLINE, part_size: 5MiB}
`, server.Endpoint())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{Path: file, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := openLocation(t.Context(), cfg.Locations["main"], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Location(); got != "gs://backups/hbase" {
		t.Errorf("the location is %s", got)
	}

	away := errors.New("not part of this test")
	items := check.Run(t.Context(), check.Cluster{Name: "prod", MasterErr: away, FSErr: away,
		Target: check.Location{Name: "main", Location: s, Place: catalog.Place{Name: "main", Store: prefixed.New(s, "prod")}}})
	seen := 0
	for _, i := range items {
		if strings.HasPrefix(i.Name, "target main") {
			if seen++; i.Status != check.OK {
				t.Errorf("%s: %s %s (%s)", i.Name, i.Status, i.Detail, i.Hint)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d items of the target: %+v", seen, items)
	}
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		t.Errorf("the check has left %s, %v", obj.Key, err)
	}
}
