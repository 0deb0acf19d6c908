package generations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
)

// TestThirtyTables backs up a whole cluster, and once the run has begun one of its
// tables is dropped, one loses a file and one has a damaged one: those three fail,
// each with its cause, and the others do not care; a table that is disabled meanwhile
// is one of these. The next run heals all, with a new table, and reports the dropped one.
func TestThirtyTables(t *testing.T) {
	servers.ForTest(t)
	x := cli.New(t, cli.Config{
		Clusters: map[string]cli.Cluster{"prod": func() cli.Cluster {
			c := cli.Of(cluster, "dir")
			c.Extra = map[string]any{"tables": map[string]any{"include": []string{"many:*"}}}
			return c
		}()},
		Locations: map[string]map[string]any{"dir": cli.Dir(t, t.TempDir()+"/backups")},
	})
	name := func(n int) string { return fmt.Sprintf("many:t%02d", n) }
	makeTables(t, name, 30)

	const disabled, dropped, lossy, damaged = 4, 29, 11, 17
	gate := cli.NewGate(t, "backup.lease-taken")
	run := x.With(gate.Env()).Start(t, "-o", "json", "backup", "--cluster", "prod")
	gate.Reached(t, run)
	fs := hdfs(t)
	lostFile, damagedFile := onlyFile(t, fs, name(lossy)), onlyFile(t, fs, name(damaged))
	lostBytes, goodBytes := read(t, fs, lostFile), read(t, fs, damagedFile)
	check(t, cluster.Disable(t.Context(), name(disabled)))
	check(t, cluster.Drop(t.Context(), name(dropped)))
	check(t, fs.Remove(t.Context(), lostFile))
	flipped := bytes.Clone(goodBytes)
	flipped[len(flipped)/3] ^= 1
	replace(t, fs, damagedFile, flipped)
	gate.Open(t)
	first := run.Wait()
	b := backupOf(t, first, 3)
	if b.State != "partial" || len(b.Tables) != 30 {
		t.Fatalf("state %s with %d tables: %s", b.State, len(b.Tables), first)
	}
	causes := map[string]string{name(dropped): "", name(lossy): base(lostFile), name(damaged): base(damagedFile)}
	for _, line := range b.Tables {
		cause, broken := causes[line.Table]
		switch {
		case !broken && (line.Error != nil || line.Image == ""):
			t.Errorf("%s has failed: %+v", line.Table, line.Error)
		case broken && (line.Error == nil || line.Error.Message == "" || line.Error.Hint == ""):
			t.Errorf("%s: the cause is %+v", line.Table, line.Error)
		case broken && !strings.Contains(line.Error.Message, cause):
			t.Errorf("%s: the cause does not name %s: %s", line.Table, cause, line.Error.Message)
		case broken && line.Image != "":
			t.Errorf("%s has failed and has the image %s", line.Table, line.Image)
		}
	}
	if !strings.Contains(first.Stderr, "3 of 30 tables failed") {
		t.Errorf("standard error: %s", first.Stderr)
	}
	// The record says the same, to whoever looks later.
	var described backupDocument
	x.JSON(t, &described, "describe", b.ID)
	if !slices.EqualFunc(described.Tables, b.Tables, func(a, b tableLine) bool {
		return a.Table == b.Table && a.Image == b.Image && (a.Error == nil) == (b.Error == nil)
	}) {
		t.Errorf("describe says %+v", described.Tables)
	}
	x.OK(t, "verify", b.ID)

	replace(t, fs, damagedFile, goodBytes)
	replace(t, fs, lostFile, lostBytes)
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: name(30), Families: servers.Families("f")}))
	r := x.Run(t.Context(), "-o", "json", "backup", "--cluster", "prod")
	healed := backupOf(t, r, 0)
	if healed.State != "complete" || len(healed.Tables) != 30 || !slices.Equal(healed.Gone, []string{name(dropped)}) {
		t.Errorf("state %s, %d tables, gone %v: %s", healed.State, len(healed.Tables), healed.Gone, r)
	}
	if healed.CopiedFiles != 2 {
		t.Errorf("%d files were copied, want those of the two tables that were broken", healed.CopiedFiles)
	}
	for _, n := range []int{disabled, lossy, damaged} {
		as := fmt.Sprintf("restored:t%02d", n)
		x.OK(t, "restore", healed.ID, "--table", name(n), "--as", as, "--create-namespace")
		d, err := cluster.Dump(t.Context(), as, true)
		if err != nil || d.Cells != rows {
			t.Errorf("%s has %d cells, %v", as, d.Cells, err)
		}
	}
	var left struct {
		Items []struct{ Name, Status, Detail string } `json:"items"`
	}
	check(t, json.Unmarshal([]byte(x.Run(t.Context(), "-o", "json", "check", "--cluster", "prod").Stdout), &left))
	if !slices.ContainsFunc(left.Items, func(i struct{ Name, Status, Detail string }) bool { return i.Name == "snapshots" && i.Status == "OK" }) {
		t.Errorf("snapshots are left: %+v", left.Items)
	}
}

const rows = 20

// makeTables makes tables of one file each.
func makeTables(t *testing.T, name func(int) string, tables int) {
	t.Helper()
	check(t, cluster.CreateTable(t.Context(), servers.TableSpec{Name: name(0), Families: servers.Families("f")}))
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for n := worker; n < tables && !t.Failed(); n += 3 {
				err := error(nil)
				if n > 0 { // the first one made the name space
					err = cluster.CreateTable(t.Context(), servers.TableSpec{Name: name(n), Families: servers.Families("f")})
				}
				if err == nil {
					_, err = cluster.Load(t.Context(), name(n), servers.LoadSpec{Seed: int64(n), Rows: rows, ValueBytes: 100})
				}
				if err == nil {
					err = cluster.Flush(t.Context(), name(n))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// onlyFile gives the path of a table's one store file.
func onlyFile(t *testing.T, fs rootfs.FS, table string) string {
	t.Helper()
	dir := "/hbase/data/" + strings.Replace(table, ":", "/", 1)
	regions, err := fs.ReadDir(t.Context(), dir)
	check(t, err)
	for _, r := range regions {
		files, err := fs.ReadDir(t.Context(), r.Path+"/f")
		if err != nil {
			continue
		}
		for _, f := range files {
			if !f.Dir {
				return f.Path
			}
		}
	}
	t.Fatalf("no store file of %s in %s", table, dir)
	return ""
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func read(t *testing.T, fs rootfs.FS, path string) []byte {
	t.Helper()
	r, _, err := fs.Open(t.Context(), path, 0)
	check(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	check(t, err)
	return b
}

// replace gives the file this content.
func replace(t *testing.T, fs rootfs.FS, path string, content []byte) {
	t.Helper()
	check(t, fs.Remove(t.Context(), path))
	w, err := fs.Create(t.Context(), path)
	check(t, err)
	_, err = w.Write(content)
	check(t, err)
	check(t, w.Close())
}
