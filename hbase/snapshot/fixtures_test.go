package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// The directory testdata holds snapshots that real servers took (HBase 2.4.18,
// 2.5.13 and 2.6.4), with a list of all store files that then lay in the root
// directory. The tests in e2e/snapshot make them; see there how the tables came
// to be.

// fixtureFS shows a fixture as a cluster's root directory "/": the snapshots'
// own files and, without content, the store files.
type fixtureFS struct {
	dir   string
	sizes map[string]int64
}

func openFixtures(t *testing.T, version string) *fixtureFS {
	dir := filepath.Join("testdata", version)
	list, err := os.ReadFile(filepath.Join(dir, "files.txt"))
	if err != nil {
		t.Fatal(err)
	}
	fs := &fixtureFS{dir: dir, sizes: map[string]int64{}}
	for line := range strings.Lines(string(list)) {
		var size int64
		var p string
		if _, err := fmt.Sscanf(line, "%d %s", &size, &p); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		fs.sizes[p] = size
	}
	return fs
}

func (fs *fixtureFS) URI() string { return "fixture:" }

func (fs *fixtureFS) Stat(_ context.Context, p string) (rootfs.Info, error) {
	size, there := fs.sizes[p]
	if !there {
		return rootfs.Info{}, hbackup.Errorf("stat", p, hbackup.KindNotFound, "no such file")
	}
	return rootfs.Info{Name: path.Base(p), Path: p, Size: size}, nil
}

func (fs *fixtureFS) Open(_ context.Context, p string, offset int64) (io.ReadCloser, rootfs.Info, error) {
	dir, name := path.Split(strings.TrimPrefix(p, "/"+SnapshotsDir+"/"))
	data, err := os.ReadFile(filepath.Join(fs.dir, dir, strings.TrimPrefix(name, ".")))
	if err != nil {
		return nil, rootfs.Info{}, hbackup.E("open", p, hbackup.KindNotFound, err)
	}
	return io.NopCloser(bytes.NewReader(data[offset:])), rootfs.Info{Name: name, Path: p, Size: int64(len(data))}, nil
}

func (fs *fixtureFS) ReadDir(context.Context, string) ([]rootfs.Info, error) {
	return nil, hbackup.Errorf("list", "", hbackup.KindDenied, "nobody should list a directory")
}

func eachFixture(t *testing.T, check func(t *testing.T, fs *fixtureFS, version, table string, m *Manifest)) {
	dirs, err := filepath.Glob("testdata/2.*/of-fx-*")
	if err != nil || len(dirs) < 33 {
		t.Fatalf("%d fixtures, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		version, name := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
		t.Run(version+"/"+name, func(t *testing.T) {
			fs := openFixtures(t, version)
			m, err := Read(t.Context(), fs, "/", name)
			if err != nil {
				t.Fatal(err)
			}
			check(t, fs, version, strings.TrimPrefix(name, "of-fx-"), m)
		})
	}
}

// Every target of a real manifest is where it should be, with the right size.
func TestRealSnapshots(t *testing.T) {
	eachFixture(t, func(t *testing.T, fs *fixtureFS, version, table string, m *Manifest) {
		if d := m.Description; d.Table != (hbackup.TableName{Namespace: "fx", Qualifier: table}) || d.Name != "of-fx-"+table ||
			d.Type != TypeFlush || d.Version != 2 || d.Created.Year() < 2026 || d.TTL != 0 {
			t.Errorf("description %+v", d)
		}
		faults, err := Missing(t.Context(), fs, "/", m)
		if err != nil || len(faults) > 0 {
			t.Errorf("missing: %+v, %v", faults, err)
		}
		if m.NumFiles() == 0 {
			t.Error("the snapshot has no files")
		}
		// A region's directory is its encoded name; those of the MOB region too.
		for i := range m.Regions {
			r, found := &m.Regions[i], false
			for p := range fs.sizes {
				found = found || strings.Contains(p, "/"+string(r.Encoded)+"/")
			}
			if !found && r.NumFiles() > 0 {
				t.Errorf("no directory is named like region %s %s", r.Encoded, r.keys())
			}
		}
	})
}

// What we write is byte for byte what HBase wrote.
func TestRealManifestsAreWrittenAlike(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtureFS, version, table string, m *Manifest) {
		again, err := EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if table == "mobclone" && version == "2.5" {
			// HBase's size of the link's own empty file is not repeated: a tag and a zero.
			if len(again) >= len(m.Raw) || !bytes.HasPrefix(m.Raw, again[:40]) {
				t.Errorf("%d bytes after %d", len(again), len(m.Raw))
			}
			return
		}
		if !bytes.Equal(again, m.Raw) {
			t.Errorf("got  %x\nwant %x", again, m.Raw)
		}
		for i := range m.Regions {
			r := &m.Regions[i]
			if r.Split || r.Offline {
				continue
			}
			if raw := EncodeRegionInfo(r.Table, r.StartKey, r.EndKey, r.ID); !bytes.Equal(raw, r.RawInfo) {
				t.Errorf("region info: got %x, want %x", raw, r.RawInfo)
			}
		}
	})
}

// The regions that come out, with the number of their files.
func TestRealSnapshotsComposed(t *testing.T) {
	type result []string
	want := map[string]result{
		"plain":         {"-55555555:######", "55555555-aaaaaaaa:######", "aaaaaaaa-:######"},
		"split":         {"-:######"},
		"merged":        {"-33333333:####", "33333333-99999999:##########", "99999999-:########"},
		"mergedempty":   {"-40000000:", "40000000-c0000000:##", "c0000000-:"},
		"splittwice":    {"-80000000:##", "80000000-:##"},
		"onesided":      {"-80000000:##", "80000000-:"},
		"cloneofsplit":  {"-:########"},
		"cloneofmerged": {"-33333333:####", "33333333-99999999:############", "99999999-:########"},
		"cloneofplain":  {"-55555555:######", "55555555-aaaaaaaa:########", "aaaaaaaa-:######"},
		"mob":           {"-:##", ".mob-:#"},
		"mobclone":      {"-:####", ".mob-:"},
	}
	eachFixture(t, func(t *testing.T, _ *fixtureFS, version, table string, m *Manifest) {
		o := caseOptions
		c, err := Compose(m, o)
		expected := want[table]
		switch {
		case table == "mobclone":
			if !hbackup.IsKind(err, hbackup.KindUnsupported) || !strings.Contains(err.Error(), "fx:mob") {
				t.Errorf("a clone's MOB files: %v", err)
			}
			o.ForeignMOB = true
			c, err = Compose(m, o)
			if version == "2.5" {
				if !hbackup.IsKind(err, hbackup.KindUnsupported) {
					t.Errorf("links to MOB files: %v", err)
				}
				return
			}
			if version == "2.4" {
				expected = result{"-:####", ".mob-:#"}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ranges(c); strings.Join(got, " ") != strings.Join(expected, " ") {
			t.Errorf("got %q, want %q", got, expected)
		}
	})
}
