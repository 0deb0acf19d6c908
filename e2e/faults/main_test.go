// Package faults does to a real HBase, HDFS and location what goes wrong in
// operation, while hbackup works or before it does, and looks for the right
// image, or for one clear line, the right exit code and nothing written.
package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
)

const bucket = "backups"

// One cluster with cleaners that delete at once, and one S3 gateway, serve all
// tests of the package; the last one kills the cluster.
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
	if dirRoot, err = os.MkdirTemp("", "hbackup-faults-"); err != nil {
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

// locations gives where a test's locations lie on this machine's disk.
func s3Dir(t *testing.T) string   { return filepath.Join(s3.BucketDir(bucket), slug(t)) }
func fileDir(t *testing.T) string { return filepath.Join(dirRoot, slug(t)) }

func slug(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-", ",", "").Replace(t.Name()))
}

// config knows the cluster under two names: "prod" backs up to S3, "dir" to a
// directory. Files are copied one at a time, so that a test can stop between two.
func config(t *testing.T) cli.Config {
	t.Helper()
	return cli.Config{
		Clusters:  map[string]cli.Cluster{"prod": cli.Of(cluster, "s3"), "dir": cli.Of(cluster, "file")},
		Locations: map[string]map[string]any{"s3": cli.S3(s3, bucket, slug(t)), "file": cli.Dir(t, fileDir(t))},
		Extra:     map[string]any{"copy": map[string]any{"concurrency": 1}},
	}
}

func toolOf(t *testing.T, c cli.Config) *cli.Tool {
	t.Helper()
	return cli.New(t, c, cli.Keys(s3)...)
}

// table makes a table of 3 regions, 2 families and 2 files in each store.
func table(t *testing.T, name string, seed int64) {
	t.Helper()
	check(t, cluster.SetCompaction(t.Context(), false))
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: name, SplitKeys: servers.HexSplits(3),
		Families: []servers.FamilySpec{{Name: "a", Versions: 3}, {Name: "b"}}}))
	load := servers.Mixed(seed, 400)
	load.FlushEvery = 200
	_, err := cluster.Load(t.Context(), name, load)
	check(t, err)
	check(t, cluster.Flush(t.Context(), name))
}

func dump(t *testing.T, table string) servers.Dump {
	t.Helper()
	d, err := cluster.Dump(t.Context(), table, true)
	check(t, err)
	return d
}

// clean lets everything in the archive be deleted that nothing protects.
func clean(t *testing.T) {
	t.Helper()
	_, err := cluster.RunCatalogJanitor(t.Context())
	check(t, err)
	check(t, cluster.RefreshSnapshotCache(t.Context()))
	_, err = cluster.RunCleaner(t.Context())
	check(t, err)
}

// compact has HBase compact the table and move what it replaced to the archive.
func compact(t *testing.T, table string) {
	t.Helper()
	check(t, cluster.SetCompaction(t.Context(), true))
	check(t, cluster.MajorCompact(t.Context(), table))
	check(t, cluster.ArchiveCompacted(t.Context()))
	check(t, cluster.SetCompaction(t.Context(), false))
}

// hdfs opens the cluster's file system for the test.
func hdfs(t *testing.T) rootfs.FS {
	t.Helper()
	fs, err := rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{cluster.HDFS.Address()}, User: cluster.HDFS.User()})
	check(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs
}

// ours gives the snapshots on the cluster whose names begin with hbackup.
func ours(t *testing.T) []string {
	t.Helper()
	all, err := cluster.ListSnapshots(t.Context())
	check(t, err)
	var out []string
	for _, s := range all {
		if strings.HasPrefix(s.Name, "hbackup") {
			out = append(out, s.Name)
		}
	}
	return out
}

// objects gives the files below a directory, by their paths in it.
func objects(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// committed gives the images and the records of runs among the objects.
func committed(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(objects(t, dir), func(path string) bool {
		return !strings.Contains(path, "/images/") && !strings.Contains(path, "/backups/")
	})
}

// failure is what is expected of a run that must not succeed.
type failure struct {
	code int
	says []string // each somewhere in what it says
}

// holds fails the test unless the run ended so: with that code, one line that
// says why and one with a hint, and no trace of a program's inside.
func (f failure) holds(t *testing.T, r cli.Result) {
	t.Helper()
	if r.Code != f.code {
		t.Errorf("exit code %d is wanted: %s", f.code, r)
	}
	var errors, hints int
	for line := range strings.Lines(r.Stderr) {
		switch {
		case strings.HasPrefix(line, "hbackup: "):
			errors++
		case strings.HasPrefix(line, "hint: "):
			hints++
		}
	}
	if errors != 1 || hints != 1 {
		t.Errorf("%d lines of errors and %d hints: %s", errors, hints, r)
	}
	for _, text := range f.says {
		if !strings.Contains(r.Stderr, text) {
			t.Errorf("it does not say %q: %s", text, r)
		}
	}
	for _, text := range []string{"goroutine ", "panic", ".go:"} {
		if strings.Contains(r.Stderr, text) {
			t.Errorf("it shows its inside (%q): %s", text, r)
		}
	}
}

// backupOf reads the id out of what a backup prints.
func backupOf(t *testing.T, r cli.Result) string {
	t.Helper()
	var doc struct {
		ID    string `json:"backup"`
		State string `json:"state"`
	}
	if r.Code != 0 {
		t.Fatalf("%s", r)
	}
	check(t, json.Unmarshal([]byte(r.Stdout), &doc))
	if doc.State != "complete" {
		t.Fatalf("%s", r)
	}
	return doc.ID
}

// equal restores a backup of the table under another name, compares every cell
// and drops it.
func equal(t *testing.T, x *cli.Tool, backup, table string, want servers.Dump) {
	t.Helper()
	as := fmt.Sprintf("faults:back_%s", strings.ReplaceAll(strings.ToLower(backup), ".", "_"))
	x.OK(t, "restore", backup, "--table", table, "--as", as, "--create-namespace")
	if err := servers.DiffDumps(want, dump(t, as)); err != nil {
		t.Error(err)
	}
	check(t, cluster.Drop(t.Context(), as))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
