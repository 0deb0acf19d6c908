package faults

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup/hbase/rootfs"
)

// TestDamageAtTheSource replaces a store file in HDFS by one of which a byte is
// flipped, or the end is missing. HDFS finds nothing wrong with it.
func TestDamageAtTheSource(t *testing.T) {
	for i, c := range []struct {
		name   string
		damage func([]byte) []byte
		master bool // HBase's master finds it when it takes the snapshot, and names the file alone
	}{
		{"a byte flipped", func(b []byte) []byte { b[len(b)/3] ^= 0x10; return b }, false},
		{"the first byte flipped", func(b []byte) []byte { b[0] ^= 0x10; return b }, false},
		{"the last byte flipped", func(b []byte) []byte { b[len(b)-1] ^= 0x10; return b }, false},
		{"shortened", func(b []byte) []byte { return b[:len(b)-100] }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := toolOf(t, config(t))
			name := "faults:source" + string(rune('a'+i))
			table(t, name, int64(300+i))
			file := storeFile(t, name)
			rewrite(t, hdfs(t), file, c.damage)
			for _, cl := range []string{"prod", "dir"} {
				r := x.Run(t.Context(), "backup", "--cluster", cl, "--tables", name)
				says := cluster.HDFS.URI() + file
				if c.master {
					says = filepath.Base(file)
				}
				failure{14, []string{says}}.holds(t, r)
			}
			if done := append(committed(t, s3Dir(t)), committed(t, fileDir(t))...); len(done) > 0 {
				t.Errorf("committed: %q", done)
			}
			for _, o := range append(objects(t, s3Dir(t)), objects(t, fileDir(t))...) {
				if strings.HasSuffix(o, filepath.Base(file)) {
					t.Errorf("the damaged file was published as %s", o)
				}
			}
			if left := ours(t); len(left) > 0 {
				t.Errorf("snapshots left: %q", left)
			}
		})
	}
}

// storeFile gives the path of one of the table's files on HDFS.
func storeFile(t *testing.T, name string) string {
	t.Helper()
	region := regions(t, name)[1].Encoded
	dir := "/hbase/data/" + strings.Replace(name, ":", "/", 1) + "/" + region + "/a"
	entries, err := hdfs(t).ReadDir(t.Context(), dir)
	check(t, err)
	for _, e := range entries {
		if !e.Dir {
			return e.Path
		}
	}
	t.Fatalf("no files in %s", dir)
	return ""
}

func rewrite(t *testing.T, fs rootfs.FS, file string, change func([]byte) []byte) {
	t.Helper()
	r, _, err := fs.Open(t.Context(), file, 0)
	check(t, err)
	data, err := io.ReadAll(r)
	check(t, err)
	check(t, r.Close())
	check(t, fs.Remove(t.Context(), file))
	w, err := fs.Create(t.Context(), file)
	check(t, err)
	_, err = w.Write(change(data))
	check(t, err)
	check(t, w.Close())
}

// TestDamageInTheLocation does every harm to every kind of object of an image and
// looks whether verify names it, and whether a restore refuses and leaves nothing.
func TestDamageInTheLocation(t *testing.T) {
	const name = "faults:stored"
	table(t, name, 400)
	want := dump(t, name)
	x := toolOf(t, config(t))
	for _, at := range []struct{ cluster, dir, url string }{
		{"prod", s3Dir(t), "s3://" + bucket + "/" + slug(t)},
		{"dir", fileDir(t), "file://" + fileDir(t)},
	} {
		id := x.Backup(t, at.cluster, name)
		x.OK(t, "verify", id)
		for kind, folder := range map[string]string{"store file": "archive/", "image": "images/", "manifest": ".hbase-snapshot/"} {
			all := slices.DeleteFunc(objects(t, at.dir), func(o string) bool { return !strings.HasPrefix(o, at.cluster+"/"+folder) })
			if len(all) == 0 {
				t.Fatalf("no %s among the objects", kind)
			}
			object := all[len(all)/2]
			file := filepath.Join(at.dir, object)
			good, err := os.ReadFile(file)
			check(t, err)
			for harm, do := range map[string]func() error{
				"flipped":   func() error { return overwrite(file, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) },
				"shortened": func() error { return overwrite(file, func(b []byte) []byte { return b[:len(b)-1] }) },
				"emptied":   func() error { return overwrite(file, func(b []byte) []byte { return nil }) },
				"longer":    func() error { return overwrite(file, func(b []byte) []byte { return append(b, 'x') }) },
				"removed":   func() error { return os.Rename(file, file+"~") },
			} {
				check(t, do())
				r := x.Run(t.Context(), "verify", id)
				if r.Code != 14 || !strings.Contains(r.Stdout+r.Stderr, at.url+"/"+object) || !strings.Contains(r.Stderr, "hint: ") {
					t.Errorf("%s %s: verify: %s", kind, harm, r)
				}
				r = x.Run(t.Context(), "restore", id, "--table", name, "--as", "faults:never")
				if r.Code != 14 || !strings.Contains(r.Stderr, at.url+"/"+object) {
					t.Errorf("%s %s: restore: %s", kind, harm, r)
				}
				if harm == "removed" {
					check(t, os.Rename(file+"~", file))
				} else {
					check(t, overwrite(file, func([]byte) []byte { return good }))
				}
			}
		}
		x.OK(t, "verify", id)
		if left := ours(t); len(left) > 0 {
			t.Errorf("snapshots left: %q", left)
		}
		equal(t, x, id, name, want)
	}
	tables, err := cluster.ListTables(t.Context())
	check(t, err)
	if tables["faults:never"] != "" {
		t.Error("a damaged image was restored")
	}
}

// overwrite changes a file in place, as a bad disk would: its attributes stay.
func overwrite(file string, change func([]byte) []byte) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return err
	}
	return os.WriteFile(file, change(b), 0o600)
}

// TestDamagedObjectIsMadeGoodByTheNextBackup cuts an object short and backs up again:
// both images are whole then, and it is said that one was not.
func TestDamagedObjectIsMadeGoodByTheNextBackup(t *testing.T) {
	const name = "faults:mend"
	table(t, name, 500)
	x := toolOf(t, config(t))
	first := x.Backup(t, "dir", name)
	all := slices.DeleteFunc(objects(t, fileDir(t)), func(o string) bool { return !strings.HasPrefix(o, "dir/archive/") })
	file := filepath.Join(fileDir(t), all[0])
	check(t, overwrite(file, func(b []byte) []byte { return b[:len(b)-1] }))
	r := x.Run(t.Context(), "-o", "json", "backup", "--cluster", "dir", "--tables", name)
	var second struct {
		ID     string `json:"backup"`
		Tables []struct {
			Copied   int `json:"copied_files"`
			Replaced int `json:"replaced_files"`
		} `json:"tables"`
	}
	check(t, json.Unmarshal([]byte(r.Stdout), &second))
	if len(second.Tables) != 1 || second.Tables[0].Copied != 1 || second.Tables[0].Replaced != 1 || !strings.Contains(r.Stderr, all[0][len("dir/"):]) {
		t.Errorf("it is not said what was damaged: %s", r)
	}
	x.OK(t, "verify", first)
	x.OK(t, "verify", second.ID)
}
