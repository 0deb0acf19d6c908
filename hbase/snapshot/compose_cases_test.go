package snapshot

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

var caseTable = hbackup.TableName{Namespace: "default", Qualifier: "t"}

// caseRegion describes a region in few words. Files of the family f: names, with
// "^row" for a reference to the upper and "_row" to the lower half.
type caseRegion struct {
	start, end string
	id         uint64
	files      []string
	more       func(*hbpb.SnapshotRegionManifest)
}

func (r caseRegion) encoded() string {
	return string(EncodeRegionName(caseTable, []byte(r.start), r.id, 0))
}

func caseManifest(t *testing.T, regions ...caseRegion) *Manifest {
	tn := &hbpb.TableName{Namespace: []byte("default"), Qualifier: []byte("t")}
	msg := &hbpb.SnapshotDataManifest{TableSchema: &hbpb.TableSchema{TableName: tn, ColumnFamilies: []*hbpb.ColumnFamilySchema{
		{Name: []byte("f"), Attributes: []*hbpb.BytesBytesPair{{First: []byte("IS_MOB"), Second: []byte("true")}}},
		{Name: []byte("g")},
	}}}
	for _, r := range regions {
		ff := &hbpb.SnapshotRegionManifest_FamilyFiles{FamilyName: []byte("f")}
		for _, name := range r.files {
			sf := &hbpb.SnapshotRegionManifest_StoreFile{FileSize: proto.Uint64(100)}
			if n, row, isTop := strings.Cut(name, "^"); isTop {
				name, sf.Reference = n, &hbpb.Reference{Splitkey: SplitKeyOf([]byte(row)), Range: hbpb.Reference_TOP.Enum()}
			} else if n, row, isLow := strings.Cut(name, "_"); isLow && !strings.Contains(name, "SeqId") && len(name) < mobNameLen {
				name, sf.Reference = n, &hbpb.Reference{Splitkey: SplitKeyOf([]byte(row)), Range: hbpb.Reference_BOTTOM.Enum()}
			}
			sf.Name = proto.String(name)
			ff.StoreFiles = append(ff.StoreFiles, sf)
		}
		rm := &hbpb.SnapshotRegionManifest{
			RegionInfo:  &hbpb.RegionInfo{RegionId: proto.Uint64(r.id), TableName: tn, StartKey: []byte(r.start), EndKey: []byte(r.end)},
			FamilyFiles: []*hbpb.SnapshotRegionManifest_FamilyFiles{ff},
		}
		if r.more != nil {
			r.more(rm)
		}
		msg.RegionManifests = append(msg.RegionManifests, rm)
	}
	m, err := DecodeManifest(mustMarshal(t, msg))
	if err != nil {
		t.Fatal(err)
	}
	m.Description = Description{Name: "source", Table: caseTable, Version: 2, TTL: 3600e9}
	return m
}

func splitParent(rm *hbpb.SnapshotRegionManifest) {
	rm.RegionInfo.Split, rm.RegionInfo.Offline = proto.Bool(true), proto.Bool(true)
}

func offline(rm *hbpb.SnapshotRegionManifest) { rm.RegionInfo.Offline = proto.Bool(true) }

func otherFamily(name string) func(rm *hbpb.SnapshotRegionManifest) {
	return func(rm *hbpb.SnapshotRegionManifest) { rm.FamilyFiles[0].FamilyName = []byte(name) }
}

var caseOptions = ComposeOptions{Name: "made", Job: "job.1"}

func TestComposeRefuses(t *testing.T) {
	parent := caseRegion{start: "", end: "m", id: 1, files: []string{hexA}, more: splitParent}
	p := parent.encoded()
	gone := hexOf("a region that is not in the snapshot")
	rest := caseRegion{start: "m", id: 2}
	for what, c := range map[string]struct {
		kind    hbackup.Kind
		says    string
		regions []caseRegion
	}{
		"no region":                         {hbackup.KindIncomplete, "no region", nil},
		"hole at the beginning":             {hbackup.KindIncomplete, `before "a"`, []caseRegion{{start: "a", id: 1}}},
		"hole at the end":                   {hbackup.KindIncomplete, `from "z"`, []caseRegion{{end: "z", id: 1}}},
		"hole":                              {hbackup.KindIncomplete, `from "c" to "m"`, []caseRegion{{end: "c", id: 1}, rest}},
		"overlap":                           {hbackup.KindCorrupt, "overlap", []caseRegion{{end: "n", id: 1}, rest}},
		"two endless regions":               {hbackup.KindCorrupt, "overlap", []caseRegion{{id: 1}, rest}},
		"backward region":                   {hbackup.KindCorrupt, "overlap", []caseRegion{{end: "m", id: 1}, {start: "m", end: "c", id: 3}, {start: "c", id: 3}}},
		"hole that no offline region fills": {hbackup.KindIncomplete, `from "c"`, []caseRegion{{end: "c", id: 1}, {start: "d", end: "m", id: 3, more: offline}, rest}},
		"parent without daughters":          {hbackup.KindIncomplete, "before", []caseRegion{parent, rest}},
		"family that the schema lacks":      {hbackup.KindUnsupported, `family "old"`, []caseRegion{{id: 1, files: []string{hexA}, more: otherFamily("old")}}},
		"one daughter has compacted": {hbackup.KindUnsupported, "does not show its rows", []caseRegion{parent,
			{end: "c", id: 5, files: []string{hexA + "." + p + "_c"}}, {start: "c", end: "m", id: 5, files: []string{hexB}}, rest}},
		"one of two files compacted": {hbackup.KindUnsupported, hexB, []caseRegion{parent,
			{end: "c", id: 5, files: []string{hexA + "." + p + "_c", hexB + "." + p + "_c"}}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + p + "^c"}}, rest}},
		"daughter was split again": {hbackup.KindUnsupported, "does not show its rows", []caseRegion{parent,
			{end: "c", id: 5, files: []string{hexA, hexB}, more: splitParent}, {end: "b", id: 6}, {start: "b", end: "c", id: 6},
			{start: "c", end: "m", id: 5, files: []string{hexA + "." + p + "^c"}}, rest}},
		"lower half of an unknown parent": {hbackup.KindUnsupported, "cannot be told", []caseRegion{{end: "m", id: 5, files: []string{hexA + "." + gone + "_m"}}, rest}},
		"upper half of an unknown parent": {hbackup.KindUnsupported, "cannot be told", []caseRegion{{end: "m", id: 5}, {start: "m", id: 5, files: []string{hexA + "." + gone + "^m"}}}},
		"halves that do not meet": {hbackup.KindUnsupported, "cannot be told", []caseRegion{
			{end: "c", id: 5, files: []string{hexA + "." + gone + "_c"}}, {start: "c", end: "m", id: 5}, {start: "m", id: 5, files: []string{hexA + "." + gone + "^m"}}}},
		"three regions refer to one": {hbackup.KindUnsupported, "cannot be told", []caseRegion{
			{end: "c", id: 5, files: []string{hexA + "." + gone + "_c"}}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + gone + "^c"}}, {start: "m", id: 5, files: []string{hexA + "." + gone + "^m"}}}},
		"merge parent that two regions refer to": {hbackup.KindUnsupported, "cannot be told", []caseRegion{
			{end: "m", id: 5, files: []string{hexA + "." + gone + "^c"}}, {start: "m", id: 5, files: []string{hexA + "." + gone + "^n"}}}},
		"reference out of its region": {hbackup.KindUnsupported, "cannot be told", []caseRegion{{end: "m", id: 5, files: []string{hexA + "." + gone + "^x"}}, rest}},
		"daughter narrower than its half": {hbackup.KindUnsupported, "outside of the region", []caseRegion{parent,
			{end: "b", id: 5, files: []string{hexA + "." + p + "_c"}}, {start: "b", end: "m", id: 5, files: []string{hexA + "." + p + "^c"}}, rest}},
		"file whole here and half there": {hbackup.KindUnsupported, "part of the same file", []caseRegion{parent,
			{end: "c", id: 5, files: []string{hexA + "." + p + "_c"}}, {start: "c", end: "m", id: 5, files: []string{"t=" + p + "-" + hexA}}, rest}},
		"reference without its half": {hbackup.KindUnsupported, "which half", []caseRegion{{id: 1, files: []string{hexA + "." + gone}}}},
		"split inside a row": {hbackup.KindCorrupt, "first key of a row", []caseRegion{{id: 1, files: []string{hexA + "." + gone + "^c"}, more: func(rm *hbpb.SnapshotRegionManifest) {
			k := rm.FamilyFiles[0].StoreFiles[0].Reference.Splitkey
			k[len(k)-1] = 4
		}}}},
		"replica with files":                          {hbackup.KindUnsupported, "replica", []caseRegion{{id: 1}, {id: 1, files: []string{hexA}, more: func(rm *hbpb.SnapshotRegionManifest) { rm.RegionInfo.ReplicaId = proto.Int32(1) }}}},
		"MOB file outside of the MOB region":          {hbackup.KindCorrupt, "MOB file", []caseRegion{{id: 1, files: []string{mobA}}}},
		"link in the MOB region":                      {hbackup.KindUnsupported, "does not take that for a link", []caseRegion{{id: 1}, {start: ".mob", files: []string{"u=" + hexA + "-" + mobA}}}},
		"links in a MOB family":                       {hbackup.KindUnsupported, "files of table ns:o", []caseRegion{{id: 1, files: []string{"ns=o=" + hexB + "-" + hexA}}, {start: ".mob"}}},
		"MOB files of a family that the schema lacks": {hbackup.KindUnsupported, `family "old"`, []caseRegion{{id: 1}, {start: ".mob", files: []string{mobA}, more: otherFamily("old")}}},
		"two sizes of one file": {hbackup.KindCorrupt, "bytes long", []caseRegion{{id: 1, files: []string{hexA, "t=" + (caseRegion{id: 1}).encoded() + "-" + hexA}, more: func(rm *hbpb.SnapshotRegionManifest) {
			rm.FamilyFiles[0].StoreFiles[1].FileSize = proto.Uint64(101)
		}}}},
	} {
		_, err := Compose(caseManifest(t, c.regions...), caseOptions)
		if !hbackup.IsKind(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want %s with %q, got %s: %v", what, c.kind, c.says, hbackup.KindOf(err), err)
		}
	}
	m := caseManifest(t, caseRegion{id: 1})
	for _, o := range []ComposeOptions{{Name: "", Job: "j"}, {Name: "a/b", Job: "j"}, {Name: "n", Job: ""}, {Name: "n", Job: "../j"}, {Name: "n", Job: "a=b"}} {
		if _, err := Compose(m, o); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// ranges gives the regions of a composition as "start-end:number of files".
func ranges(c *Composition) (out []string) {
	for i := range c.Manifest.Regions {
		r := &c.Manifest.Regions[i]
		out = append(out, string(r.StartKey)+"-"+string(r.EndKey)+":"+strings.Repeat("#", r.NumFiles()))
	}
	return out
}

func TestComposeTakes(t *testing.T) {
	parent := caseRegion{start: "", end: "m", id: 1, files: []string{hexA, hexB}, more: splitParent}
	p := parent.encoded()
	gone := hexOf("a region that is not in the snapshot")
	first := caseRegion{start: "c", end: "g", id: 4} // a merge parent
	rest := caseRegion{start: "m", id: 2}
	for what, c := range map[string]struct {
		regions []caseRegion
		want    []string
		notes   string
	}{
		"an empty table": {[]caseRegion{{id: 1}}, []string{"-:"}, "no MOB region"},
		"daughters": {[]caseRegion{parent, rest,
			{end: "c", id: 5, files: []string{hexA + "." + p + "_c", "7"}}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + p + "^c", "8"}}},
			[]string{"-m:###", "m-:"}, "become one region " + p},
		"a file that one daughter has alone": {[]caseRegion{parent, rest,
			{end: "c", id: 5, files: []string{hexA + "." + p + "_c", "t=" + p + "-" + hexB}}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + p + "^c"}}},
			[]string{"-m:##", "m-:"}, "split parent"},
		"daughters of a parent that is gone": {[]caseRegion{rest,
			{end: "c", id: 5, files: []string{hexA + "." + gone + "_c"}}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + gone + "^c"}}},
			[]string{"-m:#", "m-:"}, "become one region"},
		"daughters that have compacted": {[]caseRegion{parent, rest, {end: "c", id: 5, files: []string{"7"}}, {start: "c", end: "m", id: 5, files: []string{"8"}}},
			[]string{"-c:#", "c-m:#", "m-:"}, "split parent"},
		"daughters of a daughter": {[]caseRegion{parent, rest,
			{end: "c", id: 5, files: []string{hexA}, more: splitParent}, {start: "c", end: "m", id: 5, files: []string{"8"}},
			{end: "b", id: 6, files: []string{hexA + "." + (caseRegion{id: 5}).encoded() + "_b"}}, {start: "b", end: "c", id: 6, files: []string{hexA + "." + (caseRegion{id: 5}).encoded() + "^b"}}},
			[]string{"-c:#", "c-m:#", "m-:"}, "become one region"},
		"merge with a parent inside": {[]caseRegion{{end: "c", id: 1}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + gone + "^c", hexB + "." + hexOf("second") + "^g"}}, rest},
			[]string{"-c:", "c-m:##", "m-:"}, ""},
		"merge of the first region": {[]caseRegion{{end: "m", id: 5, files: []string{hexA + "." + gone + "^"}}, rest}, []string{"-m:#", "m-:"}, ""},
		"merge with an empty region, proved by the id": {[]caseRegion{{end: "c", id: 1}, {start: "c", end: "m", id: 5, files: []string{hexA + "." + first.encoded() + "^c"}}, rest},
			[]string{"-c:", "c-m:#", "m-:"}, ""},
		"offline left over": {[]caseRegion{{end: "m", id: 5, files: []string{"7"}}, rest, {start: "c", end: "d", id: 3, files: []string{"8"}, more: offline}},
			[]string{"-m:#", "m-:"}, "is left out"},
		"all offline": {[]caseRegion{{end: "m", id: 5, files: []string{"7"}, more: offline}, {start: "m", id: 2, more: offline}}, []string{"-m:#", "m-:"}, "marked offline"},
		"replica": {[]caseRegion{{id: 1, files: []string{"7"}}, {id: 1, more: func(rm *hbpb.SnapshotRegionManifest) { rm.RegionInfo.ReplicaId = proto.Int32(1) }}},
			[]string{"-:#"}, ""},
		"an empty family that the schema lacks": {[]caseRegion{{id: 1, more: otherFamily("old")}}, []string{"-:"}, ""},
		"MOB":                                   {[]caseRegion{{start: ".mob", files: []string{mobA, hexB}}, {id: 1, files: []string{"7_SeqId_3_"}}}, []string{"-:#", ".mob-:##"}, ""},
	} {
		c2, err := Compose(caseManifest(t, c.regions...), caseOptions)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got := ranges(c2); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
		if notes := strings.Join(c2.Notes, "\n"); !strings.Contains(notes, c.notes) {
			t.Errorf("%s: notes %q", what, notes)
		}
		raw, err := EncodeManifest(c2.Manifest)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		back, err := DecodeManifest(raw)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for i := range back.Regions {
			if r := &back.Regions[i]; r.Offline || r.Split || r.Replica != 0 || r.Encoded != c2.Manifest.Regions[i].Encoded {
				t.Errorf("%s: region %+v", what, r)
			}
		}
	}
}

func TestComposeWithRows(t *testing.T) {
	// An old HBase refers to a file from one daughter although it has no row of
	// the other; the other has compacted since.
	parent := caseRegion{end: "m", id: 1, files: []string{hexA}, more: splitParent}
	m := caseManifest(t, parent, caseRegion{start: "m", id: 2},
		caseRegion{end: "c", id: 5, files: []string{hexA + "." + parent.encoded() + "_c"}}, caseRegion{start: "c", end: "m", id: 5, files: []string{"8"}})
	if _, err := Compose(m, caseOptions); !hbackup.IsKind(err, hbackup.KindUnsupported) {
		t.Fatalf("without a look into the file: %v", err)
	}
	for last, ok := range map[string]bool{"b": true, "bzzz": true, "c": false, "k": false} {
		o := caseOptions
		o.Rows = func(Target) ([]byte, []byte, bool) { return []byte("a"), []byte(last), true }
		c, err := Compose(m, o)
		if ok && (err != nil || !slices.Equal(ranges(c), []string{"-c:#", "c-m:#", "m-:"})) {
			t.Errorf("last row %q: %v", last, err)
		}
		if !ok && !hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Errorf("last row %q: %v", last, err)
		}
	}
}

func TestComposedNames(t *testing.T) {
	mob := MOBRegion(caseTable)
	own := caseRegion{id: 1, files: []string{hexA, "9_SeqId_3_", "ns=o=" + hexB + "-" + hexA}, more: otherFamily("g")}
	c, err := Compose(caseManifest(t, own, caseRegion{start: ".mob", files: []string{mobA}}), caseOptions)
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Manifest.Description; d.Name != "made" || d.TTL != 0 || d.Version != 2 || d.Table != caseTable {
		t.Errorf("description %+v", d)
	}
	enc := own.encoded()
	for i, want := range []struct{ from, suffix string }{
		{"archive/data/default/t/" + enc + "/g/" + hexA, ""},
		{"archive/data/default/t/" + enc + "/g/9_SeqId_3_", "_SeqId_3_"},
		{"archive/data/ns/o/" + hexB + "/g/" + hexA, ""},
	} {
		s := c.Staged[i]
		link, fresh, _ := strings.Cut(s.Name, "-")
		if s.From.ArchivePath() != want.from || link != "hbk=job.1="+enc || len(fresh) != 32+len(want.suffix) ||
			!strings.HasSuffix(fresh, want.suffix) || s.Path != "archive/data/hbk/job.1/"+enc+"/g/"+fresh {
			t.Errorf("staged %+v, want %+v", s, want)
		}
	}
	if c.Staged[0].Name == c.Staged[2].Name {
		t.Error("two files with the same bare name are staged as one")
	}
	s := c.Staged[3]
	if s.Name != mobA || s.Path != "archive/data/default/t/"+string(mob)+"/f/"+mobA || s.Path != s.From.ArchivePath() || !s.From.MOB {
		t.Errorf("MOB file staged as %+v", s)
	}
	// Another job gets other names, the same job the same.
	if a, b := StageName("a", s.From), StageName("b", s.From); a == b || a != StageName("a", s.From) {
		t.Errorf("fresh names %s and %s", a, b)
	}
}

func TestForeignMOB(t *testing.T) {
	m := caseManifest(t,
		caseRegion{end: "m", id: 1, files: []string{hexA, "ns=o=" + hexB + "-" + hexA, "u=" + hexB + "-" + hexA + "." + hexB + "^c"}},
		caseRegion{start: "m", id: 1, files: []string{"ns=o=" + hexA + "-" + hexB, "t=" + hexA + "-" + hexB}},
		caseRegion{start: "m", id: 2, files: []string{"v=" + hexA + "-" + hexB}, more: otherFamily("g")})
	want := []FamilyOf{{"f", hbackup.TableName{Namespace: "default", Qualifier: "u"}}, {"f", hbackup.TableName{Namespace: "ns", Qualifier: "o"}}}
	if got := ForeignMOB(m); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	o := caseOptions
	o.ForeignMOB = true
	old := "ns=o=" + hexA + "-" + hexB + "20261130" + hexB // a MOB file of HBase 2.4
	c, err := Compose(caseManifest(t, caseRegion{id: 1, files: []string{"ns=o=" + hexB + "-" + hexA}}, caseRegion{start: ".mob", files: []string{old}}), o)
	if err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), "ns:o") {
		t.Fatalf("let through: %v", err)
	}
	if s := c.Staged[1]; s.Name != old || s.Path != "archive/data/ns/o/"+hexA+"/f/"+hexB+"20261130"+hexB || !s.From.MOB {
		t.Errorf("link to an old MOB file staged as %+v", s)
	}
}

func TestSplitRow(t *testing.T) {
	for _, row := range []string{"", "a", strings.Repeat("x", maxRowLen)} {
		got, err := (&Reference{SplitKey: SplitKeyOf([]byte(row))}).SplitRow()
		if err != nil || !bytes.Equal(got, []byte(row)) {
			t.Errorf("row of %d bytes: %d bytes, %v", len(row), len(got), err)
		}
	}
	key := SplitKeyOf([]byte("row"))
	for i := range key {
		if _, err := (&Reference{SplitKey: key[:i]}).SplitRow(); err == nil {
			t.Errorf("%d of %d bytes are taken", i, len(key))
		}
	}
}
