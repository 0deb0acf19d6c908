package roundtrip

import (
	"fmt"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// step is one setting of a cluster's target and what was backed up under it.
type step struct {
	target string
	id     string
	want   servers.Dump // of the table then, raw
}

const switched = "switch:table"

// TestSwitchOfTarget moves the backups of one cluster from S3 to Google Cloud
// Storage, to HDFS, to a directory and back to S3, by the line target alone,
// while the table changes; and once more to Google Cloud Storage, with files left
// where they are. After each move all backups are one history, and in the end each
// can be restored.
func TestSwitchOfTarget(t *testing.T) {
	// Here the service is played by a server that others wrote.
	fake, err := servers.StartGCS(t.Context(), servers.GCSOptions{Buckets: []string{bucket}})
	check(t, err)
	defer fake.Stop()
	places := locations(t)
	places["gcs"] = cli.GCS(fake.Endpoint(), bucket, "switch")
	check(t, cluster.SetCompaction(t.Context(), false)) // raw cells are compared

	create(t, switched, servers.HexSplits(3), servers.FamilySpec{Name: "a", Versions: 5, KeepDeleted: "TRUE"},
		servers.FamilySpec{Name: "b"}, servers.FamilySpec{Name: "m", MOB: true, MOBThreshold: 1000})
	all := []string{"s3", "gcs", "hdfs", "file"}
	var steps []step
	var x *cli.Tool
	targets := append(all, "s3", "gcs")
	for n, target := range targets {
		load := servers.Mixed(int64(300+n), 300) // with deletes of what was there before
		load.BigPercent, load.BigBytes = 20, 4000
		fill(t, switched, load)
		prod := cli.Of(cluster, target, all...) // the target is all that changes
		if n == len(targets)-1 {
			prod.Extra = map[string]any{"reference": "any"} // and this, once
		}
		x = cli.New(t, cli.Config{Clusters: map[string]cli.Cluster{"prod": prod}, Locations: places}, cli.Keys(s3)...)
		steps = append(steps, step{target: target, want: dump(t, cluster, switched, true), id: x.Backup(t, "prod", switched)})
		isHistory(t, x, steps)
		if n == 1 { // under the first target that is another one
			comesBack(t, x, steps[0], "under-"+target)
		}
	}
	liesElsewhere(t, x, steps[len(steps)-1])
	for n, s := range steps {
		x.OK(t, "verify", s.id)
		comesBack(t, x, s, fmt.Sprintf("%d-%s", n, s.target))
	}
	noneLeft(t, x, "prod")
}

// liesElsewhere checks that the backup has left files where they were, and has
// copied others.
func liesElsewhere(t *testing.T, x *cli.Tool, s step) {
	t.Helper()
	var doc struct {
		Tables []struct {
			Files       int `json:"files"`
			CopiedFiles int `json:"copied_files"`
			References  []struct {
				Location string `json:"location"`
				Name     string `json:"name"`
				Files    int    `json:"files"`
			} `json:"references"`
		} `json:"tables"`
	}
	x.JSON(t, &doc, "describe", s.id)
	if len(doc.Tables) != 1 || len(doc.Tables[0].References) == 0 {
		t.Fatalf("no file of %s lies elsewhere: %+v", s.id, doc)
	}
	d, borrowed := doc.Tables[0], 0
	for _, r := range d.References {
		borrowed += r.Files
		if len(r.Location) != 32 || r.Name == "" {
			t.Errorf("got %+v", r)
		}
	}
	if d.CopiedFiles == 0 || borrowed == 0 || borrowed+d.CopiedFiles > d.Files {
		t.Errorf("%d files were copied and %d left elsewhere, of %d", d.CopiedFiles, borrowed, d.Files)
	}
}

// isHistory checks that list shows exactly the backups of the steps, oldest
// first, each where it was written.
func isHistory(t *testing.T, x *cli.Tool, steps []step) {
	t.Helper()
	var doc struct {
		Backups []struct {
			ID       string `json:"backup"`
			Location string `json:"location"`
			State    string `json:"state"`
		} `json:"backups"`
		Unreachable []any `json:"unreachable"`
	}
	x.JSON(t, &doc, "list", "--cluster", "prod")
	if len(doc.Backups) != len(steps) || len(doc.Unreachable) > 0 {
		t.Fatalf("the history is %+v; want %d backups", doc, len(steps))
	}
	for i, s := range steps {
		if b := doc.Backups[i]; b.ID != s.id || b.Location != s.target || b.State != "complete" {
			t.Errorf("backup %d of the history is %+v; want %s in %s", i, b, s.id, s.target)
		}
	}
}

// comesBack restores the table from the backup of a step and compares every cell.
func comesBack(t *testing.T, x *cli.Tool, s step, suffix string) {
	t.Helper()
	as := restoredName(switched, suffix)
	x.OK(t, "restore", s.id, "--table", switched, "--as", as)
	if err := servers.DiffDumps(s.want, dump(t, cluster, as, true)); err != nil {
		t.Errorf("from %s (%s): %v", s.target, s.id, err)
	}
	check(t, cluster.Drop(t.Context(), as))
}
