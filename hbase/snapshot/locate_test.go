package snapshot

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rootfs"
)

var (
	someTarget = Target{Table: hbackup.TableName{Namespace: "default", Qualifier: "t"}, Region: hexA, Family: "f", File: hexB}
	bgCtx      = context.Background()
)

func TestCandidatesOrder(t *testing.T) {
	tail := "default/t/" + hexA + "/f/" + hexB
	want := [4]string{"/hb/data/" + tail, "/hb/archive/data/" + tail, "/hb/.tmp/data/" + tail, "/hb/mobdir/data/" + tail}
	if got := Candidates("/hb", someTarget); got != want {
		t.Errorf("got %v", got)
	}
	mob := someTarget
	mob.MOB = true
	if got := Candidates("/hb/", mob); got[0] != want[3] || got[1] != want[1] {
		t.Errorf("MOB: got %v", got)
	}
	if ArchivePath("/hb", someTarget) != "/hb/"+someTarget.ArchivePath() {
		t.Error("the two archive paths differ")
	}
}

// A file may be renamed between any two looks; it is found all the same, as it is
// renamed once.
func TestLocateFollowsARename(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := Candidates("/hb", someTarget)
		from, to := rapid.IntRange(0, 3).Draw(t, "from"), rapid.IntRange(0, 3).Draw(t, "to")
		moment := rapid.IntRange(0, 9).Draw(t, "moment")
		fs := newMemFS(map[string]string{paths[from]: "content"})
		fs.after = func(string) {
			if len(fs.looks) == moment {
				fs.rename(paths[from], paths[to])
			}
		}
		info, err := Locate(bgCtx, fs, "/hb", someTarget)
		if err != nil || info.Size != 7 {
			t.Fatalf("from %d to %d after %d looks: %v, %v", from, to, moment, info, err)
		}
	})
}

func TestLocateSaysWhatIsMissing(t *testing.T) {
	fs := newMemFS(nil)
	_, err := Locate(bgCtx, fs, "/hb", someTarget)
	if !hbackup.IsKind(err, hbackup.KindIncomplete) || !strings.Contains(err.Error(), someTarget.String()) || hbackup.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if len(fs.looks) != 8 {
		t.Errorf("looked at %v", fs.looks)
	}
	bad := someTarget
	bad.File = "../../x"
	if _, err := Locate(bgCtx, fs, "/hb", bad); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("a path as a file: %v", err)
	}
	if len(fs.looks) != 8 {
		t.Error("the file system was asked for a bad path")
	}
}

func TestReadFollowsRenames(t *testing.T) {
	content := strings.Repeat("0123456789", 20)
	rapid.Check(t, func(t *rapid.T) {
		paths := Candidates("/hb", someTarget)
		fs := newMemFS(map[string]string{paths[0]: content})
		offset := rapid.IntRange(0, len(content)).Draw(t, "offset")
		r, info, err := Open(bgCtx, fs, "/hb", someTarget, int64(offset))
		if err != nil || info.Size != int64(len(content)) {
			t.Fatal(info, err)
		}
		moves := rapid.SliceOfN(rapid.IntRange(0, len(content)-1), 0, 3).Draw(t, "moves after bytes")
		slices.Sort(moves)
		var got []byte
		buf := make([]byte, 5)
		at := 0
		for {
			for len(moves) > 0 && moves[0] <= len(got) {
				fs.rename(paths[at%4], paths[(at+1)%4])
				at++
				moves = moves[1:]
			}
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != content[offset:] {
			t.Fatalf("got %q", got)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReadOfAFileThatVanishes(t *testing.T) {
	paths := Candidates("/hb", someTarget)
	for what, want := range map[string]hbackup.Kind{"gone": hbackup.KindIncomplete, "replaced": hbackup.KindCorrupt} {
		fs := newMemFS(map[string]string{paths[0]: "0123456789"})
		r, _, err := Open(bgCtx, fs, "/hb", someTarget, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		delete(fs.files, paths[0])
		if what == "replaced" {
			fs.files[paths[1]] = &memFile{[]byte("9876543210"), 99}
		}
		for range 2 { // the error stays
			if n, err := r.Read(make([]byte, 3)); n != 0 || !hbackup.IsKind(err, want) {
				t.Errorf("%s: got %d, %v", what, n, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := sharedManifestGen.Filter(func(m *Manifest) bool { _, err := Targets(m); return err == nil }).Draw(t, "manifest")
		seq, err := Targets(m)
		if err != nil {
			t.Fatal(err)
		}
		fs := newMemFS(nil)
		var want []Fault
		for target, size := range seq {
			have := max(size, 3)
			switch rapid.IntRange(0, 5).Draw(t, "fate") {
			case 0:
				want = append(want, Fault{target, size, -1})
				continue
			case 1:
				have++
				if size >= 0 {
					want = append(want, Fault{target, size, have})
				}
			}
			at := rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "place")
			fs.files[Candidates("/hb", target)[at]] = &memFile{data: make([]byte, have)}
		}
		got, err := Missing(bgCtx, fs, "/hb", m)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// deniedFS answers no question about a file.
type deniedFS struct {
	*memFS
	err error
}

func (fs deniedFS) Stat(context.Context, string) (rootfs.Info, error) {
	return rootfs.Info{}, fs.err
}

func TestMissingDoesNotTakeAFailureForAnAnswer(t *testing.T) {
	m := sharedManifestGen.Filter(func(m *Manifest) bool { _, err := Targets(m); return err == nil && m.NumFiles() > 20 }).Example(1)
	ctx, cancel := context.WithCancel(bgCtx)
	cancel()
	if faults, err := Missing(ctx, newMemFS(nil), "/hb", m); err == nil || faults != nil {
		t.Errorf("interrupted: %v, %v", faults, err)
	}
	denied := hbackup.Errorf("stat", "x", hbackup.KindDenied, "permission denied")
	if faults, err := Missing(bgCtx, deniedFS{newMemFS(nil), denied}, "/hb", m); !hbackup.IsKind(err, hbackup.KindDenied) || faults != nil {
		t.Errorf("denied: %v, %v", faults, err)
	}
}

func snapshotFiles(m *hbpb.SnapshotDataManifest, t interface{ Fatal(...any) }) map[string]string {
	d := &hbpb.SnapshotDescription{Name: proto.String("s1"), Table: proto.String("t"), Version: proto.Int32(2), CreationTime: proto.Int64(5)}
	return map[string]string{
		"/hb/.hbase-snapshot/s1/.snapshotinfo": string(mustMarshal(t, d)),
		"/hb/.hbase-snapshot/s1/data.manifest": string(mustMarshal(t, m)),
	}
}

func TestReadLooksAtNoDirectory(t *testing.T) {
	fs := newMemFS(snapshotFiles(smallManifest(), t))
	m, err := Read(bgCtx, fs, "/hb", "s1")
	if err != nil || len(m.Regions) != 1 || m.Description.Name != "s1" || len(m.Schema.Families) != 1 {
		t.Fatalf("got %+v, %v", m, err)
	}
	if fs.lists != 0 {
		t.Error("the directory was listed")
	}
}

func TestReadErrors(t *testing.T) {
	dir := "/hb/.hbase-snapshot/s1/"
	for what, c := range map[string]struct {
		kind  hbackup.Kind
		spoil func(files map[string]string)
	}{
		"no snapshot":      {hbackup.KindNotFound, func(f map[string]string) { clear(f) }},
		"no manifest":      {hbackup.KindNotFound, func(f map[string]string) { delete(f, dir+ManifestFile) }},
		"no description":   {hbackup.KindNotFound, func(f map[string]string) { delete(f, dir+InfoFile) }},
		"empty manifest":   {hbackup.KindCorrupt, func(f map[string]string) { f[dir+ManifestFile] = "" }},
		"broken manifest":  {hbackup.KindCorrupt, func(f map[string]string) { f[dir+ManifestFile] += "\x12\x7f" }},
		"broken info":      {hbackup.KindCorrupt, func(f map[string]string) { f[dir+InfoFile] = "x" }},
		"no version":       {hbackup.KindUnsupported, func(f map[string]string) { f[dir+InfoFile] = "\x0a\x02s1\x12\x01t" }},
		"old version":      {hbackup.KindUnsupported, func(f map[string]string) { f[dir+InfoFile] = "\x0a\x02s1\x12\x01t\x28\x01" }},
		"of another table": {hbackup.KindCorrupt, func(f map[string]string) { f[dir+InfoFile] = "\x0a\x02s1\x12\x01u\x28\x02" }},
	} {
		files := snapshotFiles(smallManifest(), t)
		c.spoil(files)
		m, err := Read(bgCtx, newMemFS(files), "/hb", "s1")
		if m != nil || !hbackup.IsKind(err, c.kind) {
			t.Errorf("%s: %v, %v", what, m, err)
			continue
		}
		if !strings.Contains(err.Error(), "mem://fs/hb/.hbase-snapshot/s1") {
			t.Errorf("%s: the path is missing in %q", what, err)
		}
	}
	if _, err := Read(bgCtx, newMemFS(nil), "/hb", "../x"); !hbackup.IsKind(err, hbackup.KindUsage) {
		t.Errorf("a path as a name: %v", err)
	}
}

func TestReadOfASnapshotInProgress(t *testing.T) {
	whole := smallManifest()
	second := proto.Clone(whole.RegionManifests[0]).(*hbpb.SnapshotRegionManifest)
	second.RegionInfo.StartKey = []byte("m")
	whole.RegionManifests = append(whole.RegionManifests, second)
	files := snapshotFiles(whole, t)
	want, err := Read(bgCtx, newMemFS(files), "/hb", "s1")
	if err != nil {
		t.Fatal(err)
	}
	dir := "/hb/.hbase-snapshot/s1/"
	data := files[dir+ManifestFile]
	delete(files, dir+ManifestFile)
	for i, r := range whole.RegionManifests {
		files[dir+RegionManifestStart+string(want.Regions[i].Encoded)] = string(mustMarshal(t, r))
	}
	m, err := Read(bgCtx, newMemFS(files), "/hb", "s1")
	if err != nil || len(m.Regions) != 2 || m.NumFiles() != 2 || m.Schema.Raw != nil || m.Description.Name != "s1" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if _, err := Compose(m, ComposeOptions{Name: "x", Job: "j"}); !hbackup.IsKind(err, hbackup.KindIncomplete) {
		t.Errorf("an unfinished snapshot is composed: %v", err)
	}

	// HBase finishes the snapshot while its directory is being read.
	fs := newMemFS(files)
	fs.after = func(p string) {
		if strings.Contains(p, RegionManifestStart) {
			fs.mu.Lock()
			defer fs.mu.Unlock()
			for q := range fs.files {
				if strings.Contains(q, RegionManifestStart) {
					delete(fs.files, q)
				}
			}
			fs.files[dir+ManifestFile] = &memFile{data: []byte(data)}
		}
	}
	m, err = Read(bgCtx, fs, "/hb", "s1")
	if err != nil || m.Schema.Raw == nil || len(m.Regions) != 2 {
		t.Fatalf("finished meanwhile: got %+v, %v", m, err)
	}

	// A region's file under another region's name.
	files[dir+RegionManifestStart+hexA] = files[dir+RegionManifestStart+string(want.Regions[0].Encoded)]
	if _, err := Read(bgCtx, newMemFS(files), "/hb", "s1"); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("a region under another name: %v", err)
	}
}
