package peers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

const (
	snapshotInfo   = "org.apache.hadoop.hbase.snapshot.SnapshotInfo"
	exportSnapshot = "org.apache.hadoop.hbase.snapshot.ExportSnapshot"
)

// imageLine is a table in what backup says.
type imageLine struct {
	Table string `json:"table"`
	Image string `json:"image"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// toolsRead backs all kinds up to the location and has HBase's tools read the
// images from remote, which is the cluster's directory in it. It gives the images.
func toolsRead(t *testing.T, location map[string]any, remote string, s3 *servers.S3) []imageLine {
	tables := makeTables(t)
	var env []string
	suffix := "dir"
	if s3 != nil {
		env, suffix = cli.Keys(s3), "s3"
	}
	x := cli.New(t, cli.Config{
		Clusters:  map[string]cli.Cluster{"prod": cli.Of(source, "here")},
		Locations: map[string]map[string]any{"here": location},
	}, env...)
	var doc struct {
		State  string      `json:"state"`
		Tables []imageLine `json:"tables"`
	}
	x.JSON(t, &doc, "backup", "--cluster", "prod", "--tables", strings.Join(tables, ","))
	if doc.State != "complete" || len(doc.Tables) != len(kinds) {
		t.Fatalf("the backup: %+v", doc)
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			i := slices.IndexFunc(doc.Tables, func(l imageLine) bool { return l.Table == k.table })
			lists(t, s3, remote, doc.Tables[i], k.shows)
			imports(t, s3, remote, doc.Tables[i].Image, strings.ReplaceAll(k.table, ":", "_")+"_"+suffix, dumps[k.table])
		})
	}
	return doc.Tables
}

// tool runs one of HBase's tools with the configuration of the other cluster.
func tool(t *testing.T, s3 *servers.S3, class string, args ...string) string {
	t.Helper()
	var out string
	var err error
	if s3 == nil {
		out, err = other.RunTool(t.Context(), class, args...)
	} else {
		out, _, err = other.RunPeer(t.Context(), s3, "2", class, args...)
	}
	check(t, err)
	return out
}

func info(t *testing.T, s3 *servers.S3, remote, image string) string {
	t.Helper()
	return tool(t, s3, snapshotInfo, "-remote-dir", remote, "-snapshot", image, "-files", "-stats")
}

// complaint is what SnapshotInfo says of files that are missing or have another size.
var complaint = regexp.MustCompile(`(?i)corrupt|not found|missing|bad snapshot`)

// lists has SnapshotInfo look for every file of the image.
func lists(t *testing.T, s3 *servers.S3, remote string, image imageLine, shows *regexp.Regexp) {
	t.Helper()
	out := info(t, s3, remote, image.Image)
	if line := complaint.FindString(out); line != "" {
		t.Errorf("SnapshotInfo complains (%q):\n%s", line, out)
	}
	want := fmt.Sprintf("%d HFiles (%d in archive, 0 in mob storage)", image.Files, image.Files)
	if !strings.Contains(out, want) {
		t.Errorf("SnapshotInfo does not say %q:\n%s", want, out)
	}
	if !shows.MatchString(out) {
		t.Errorf("nothing matches %s, so the table is not of its kind:\n%s", shows, out)
	}
}

// imports has ExportSnapshot bring the image into the other cluster, where it is
// cloned with HBase's own client.
func imports(t *testing.T, s3 *servers.S3, remote, image, as string, want servers.Dump) {
	t.Helper()
	tool(t, s3, exportSnapshot, "-copy-from", remote, "-snapshot", image, "-copy-to", other.Root(), "-no-checksum-verify", "-mappers", "2")
	check(t, other.CloneSnapshot(t.Context(), image, as))
	got, err := other.Dump(t.Context(), as, true)
	check(t, err)
	check(t, servers.DiffDumps(want, got))
	check(t, other.Drop(t.Context(), as))
	check(t, other.DeleteSnapshot(t.Context(), image))
	emptyArchive(t)
}

// emptyArchive has the other cluster forget all files, so that the next import
// finds none of them there.
func emptyArchive(t *testing.T) {
	t.Helper()
	check(t, other.RefreshSnapshotCache(t.Context()))
	_, err := other.RunCleaner(t.Context())
	check(t, err)
	r, err := http.Get("http://" + other.HDFS.HTTPAddress() + "/webhdfs/v1/hbase/archive/data?op=GETCONTENTSUMMARY")
	check(t, err)
	defer r.Body.Close()
	if r.StatusCode == http.StatusNotFound {
		return // the cleaners took the empty directory as well
	}
	var doc struct {
		ContentSummary struct{ FileCount, DirectoryCount int64 }
	}
	check(t, json.NewDecoder(r.Body).Decode(&doc))
	if s := doc.ContentSummary; s.DirectoryCount == 0 || s.FileCount > 0 {
		t.Fatalf("the archive still has %d files", s.FileCount)
	}
}
