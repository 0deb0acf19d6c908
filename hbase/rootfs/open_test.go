package rootfs_test

import (
	"testing"

	"hbackup"
	"hbackup/hbase/rootfs"
)

func TestOpen(t *testing.T) {
	for uri, path := range map[string]string{
		"file:///var/hbase": "/var/hbase", "file:/var/hbase/": "/var/hbase", "file:///": "/",
		"file://localhost/x": "/x",
	} {
		fs, got, err := rootfs.Open(t.Context(), uri, rootfs.Config{})
		if err != nil || got != path || fs.URI() != "file://" {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
	}
	for uri, kind := range map[string]hbackup.Kind{
		"/var/hbase": hbackup.KindUsage, "": hbackup.KindUsage, "hdfs:///hbase": hbackup.KindUsage,
		"file://host/x": hbackup.KindUsage, "s3://bucket/x": hbackup.KindUnsupported,
		"hdfs://h:1/x?y": hbackup.KindUsage, "hdfs://h:x/": hbackup.KindUsage,
	} {
		_, _, err := rootfs.Open(t.Context(), uri, rootfs.Config{})
		if !hbackup.IsKind(err, kind) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
