// Package crash ends backups and restores on a real HBase at every named step,
// lets HBase's own chores loose on what is left, and runs them again.
package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
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
	if dirRoot, err = os.MkdirTemp("", "hbackup-crash-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dirRoot)
	defer cli.Cleanup()
	if cluster, err = servers.StartCluster(ctx, servers.ClusterOptions{HBase: servers.EagerCleaners()}); err != nil {
		panic(err)
	}
	defer cluster.Stop()
	if s3, err = servers.StartS3(ctx, servers.S3Options{Buckets: []string{bucket}}); err != nil {
		panic(err)
	}
	defer s3.Stop()
	return m.Run()
}

// place is a location of one run, so that the runs of a test do not meet: the
// cluster has a name of its own for each.
type place struct {
	name string // of cluster and location
	dir  string // where the cluster's folder lies on this machine's disk
	held bool   // by the committer deferred
}

// s3Place and dirPlace name a place in the bucket and in a directory.
func s3Place(name string) place {
	return place{name: name, dir: filepath.Join(s3.BucketDir(bucket), name, name)}
}

func dirPlace(name string) place {
	return place{name: name, dir: filepath.Join(dirRoot, name, name)}
}

// heldPlace names a place in the bucket that is written by the committer deferred.
func heldPlace(name string) place {
	p := s3Place(name)
	p.held = true
	return p
}

// toolFor gives hbackup that knows the places. Files are copied one at a time,
// so that the order of the steps is that of the code.
func toolFor(t *testing.T, places ...place) *cli.Tool {
	t.Helper()
	c := cli.Config{Clusters: map[string]cli.Cluster{}, Locations: map[string]map[string]any{},
		Extra: map[string]any{"copy": map[string]any{"concurrency": 1}}}
	for _, p := range places {
		c.Clusters[p.name] = cli.Of(cluster, p.name)
		if strings.HasPrefix(p.dir, dirRoot) {
			c.Locations[p.name] = cli.Dir(t, filepath.Dir(p.dir))
		} else {
			c.Locations[p.name] = cli.S3(s3, bucket, p.name)
		}
		if p.held {
			c.Locations[p.name]["committer"] = "deferred"
		}
	}
	return cli.New(t, c, cli.Keys(s3)...)
}

// files gives the objects below a folder of the cluster's folder, with their sizes.
func (p place) files(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(p.dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[path] = info.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

// backupResult is what backup and list say of a run.
type backupResult struct {
	Backup      string `json:"backup"`
	State       string `json:"state"`
	Request     string `json:"request"`
	AlreadyDone bool   `json:"already_done"`
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
}

func resultOf(t *testing.T, r cli.Result) backupResult {
	t.Helper()
	var b backupResult
	if r.Code != 0 {
		t.Errorf("%s", r)
		return b
	}
	check(t, json.Unmarshal([]byte(r.Stdout), &b))
	return b
}

// backupArgs asks for a backup under a request id.
func backupArgs(p place, request string, tables ...string) []string {
	return []string{"-o", "json", "backup", "--cluster", p.name, "--tables", strings.Join(tables, ","), "--request-id", request}
}

// oneImage fails unless the location of one table holds exactly what the backup
// says: one run of that request, one image, its files and nothing more, all whole.
func oneImage(t *testing.T, x *cli.Tool, p place, b backupResult) {
	t.Helper()
	var list struct {
		Backups []backupResult `json:"backups"`
	}
	x.JSON(t, &list, "list", "--cluster", p.name)
	if len(list.Backups) != 1 || list.Backups[0].Backup != b.Backup || list.Backups[0].Request != b.Request || list.Backups[0].State != "complete" {
		t.Errorf("%s: the list shows %+v, the backup says %+v", p.name, list.Backups, b)
	}
	if images := p.files(t, "images"); len(images) != 1 {
		t.Errorf("%s: images: %v", p.name, images)
	}
	if snapshots := p.files(t, ".hbase-snapshot"); len(snapshots) != 2 {
		t.Errorf("%s: snapshot files: %v", p.name, snapshots)
	}
	stored, bytes := p.files(t, "archive"), int64(0)
	for _, size := range stored {
		bytes += size
	}
	if len(stored) != b.Files || bytes != b.Bytes || b.Files == 0 {
		t.Errorf("%s: %d files with %d bytes lie there, the backup says %d with %d", p.name, len(stored), bytes, b.Files, b.Bytes)
	}
	x.OK(t, "verify", b.Backup, "--cluster", p.name)
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
	slices.Sort(out)
	return out
}

// item is one line of check.
type item struct{ Name, Status, Detail, Hint string }

// items runs check and gives its lines by name.
func items(t *testing.T, x *cli.Tool, p place) map[string]item {
	t.Helper()
	var doc struct {
		Items []item `json:"items"`
	}
	r := x.Run(t.Context(), "-o", "json", "check", "--cluster", p.name)
	check(t, json.Unmarshal([]byte(r.Stdout), &doc))
	out := map[string]item{}
	for _, i := range doc.Items {
		out[i.Name] = i
	}
	return out
}

// noneLeft fails when anything of hbackup is left on the cluster, or anything
// stops its cleaners.
func noneLeft(t *testing.T, x *cli.Tool, p place) {
	t.Helper()
	all := items(t, x, p)
	for _, name := range []string{"snapshots", "cleaners"} {
		if i := all[name]; i.Status != "OK" {
			t.Errorf("%s: %+v", name, i)
		}
	}
	cleanersWork(t)
}

// cleanersWork puts a file that nobody needs into the archive and has HBase's
// cleaners delete it: they delete nothing while a snapshot is half.
func cleanersWork(t *testing.T) {
	t.Helper()
	fs := hdfs(t)
	const file = "/hbase/archive/data/default/nobody/0123456789abcdef0123456789abcdef/f/0123456789abcdef0123456789abcdef"
	check(t, fs.MkdirAll(t.Context(), path.Dir(file)))
	w, err := fs.Create(t.Context(), file)
	check(t, err)
	check(t, w.Close())
	clean(t)
	if _, err := fs.Stat(t.Context(), file); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("the cleaners leave a file that nobody needs: %v", err)
	}
}

// hdfs opens the cluster's file system for the test.
func hdfs(t *testing.T) rootfs.FS {
	t.Helper()
	fs, err := rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{cluster.HDFS.Address()}, User: cluster.HDFS.User()})
	check(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs
}

// chores has HBase do at once what it does in the course of hours: compact the
// tables, move what was replaced to the archive, and delete there whatever
// nothing protects.
func chores(t *testing.T, tables ...string) {
	t.Helper()
	check(t, cluster.SetCompaction(t.Context(), true))
	for _, table := range tables {
		check(t, cluster.MajorCompact(t.Context(), table))
	}
	check(t, cluster.ArchiveCompacted(t.Context()))
	check(t, cluster.SetCompaction(t.Context(), false))
	clean(t)
}

func clean(t *testing.T) {
	t.Helper()
	_, err := cluster.RunCatalogJanitor(t.Context())
	check(t, err)
	_, err = cluster.RunCleaner(t.Context())
	check(t, err)
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

func dump(t *testing.T, table string, raw bool) servers.Dump {
	t.Helper()
	d, err := cluster.Dump(t.Context(), table, raw)
	check(t, err)
	return d
}

// equal restores a backup of the table under another name, compares it and drops it.
func equal(t *testing.T, x *cli.Tool, p place, backup, table string, want servers.Dump, raw bool) {
	t.Helper()
	as := fmt.Sprintf("%s-%s", table, strings.ToLower(p.name))
	x.OK(t, "restore", backup, "--table", table, "--as", as, "--from-cluster", p.name, "--to-cluster", p.name)
	if err := servers.DiffDumps(want, dump(t, as, raw)); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
	check(t, cluster.Drop(t.Context(), as))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
