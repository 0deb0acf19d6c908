package backup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/hfile"
	"hbackup/hbase/snapshot"
)

// mobSample is a real HFile whose cells name a MOB file.
const mobSample = "2.6-mob.hfile"

// A MOB table that was dropped and cloned from a snapshot of itself has links to the
// files that its images name. HBase no longer lists the MOB files that they need, so
// that the images before had them says nothing.
func TestAMOBTableMadeAgainUnderItsNameIsReadClosely(t *testing.T) {
	w := newWorld(t)
	values := hbackup.TableName{Namespace: "ns", Qualifier: "values"}
	w.add(t, values, mobSample)
	before := *w.tables[values]
	refs := mobRefs(t)
	mobRegion := snapshot.MOBRegion(values)
	for _, ref := range refs {
		at := snapshot.MOBPath(w.root, snapshot.Target{Table: values, Region: mobRegion, Family: "f", File: ref.File, MOB: true})
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, sample(t, "2.6-none.hfile"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed := true
	w.shape = func(m *snapshot.Manifest) {
		raw, err := proto.Marshal(&hbpb.TableSchema{
			TableName:      &hbpb.TableName{Namespace: []byte(values.Namespace), Qualifier: []byte(values.Qualifier)},
			ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f"), Attributes: []*hbpb.BytesBytesPair{{First: []byte("IS_MOB"), Second: []byte("true")}}}}})
		if err != nil {
			t.Fatal(err)
		}
		m.Schema.Raw = raw
		if !listed {
			return
		}
		r := snapshot.Region{Encoded: mobRegion, Table: values, StartKey: []byte(".mob"), RawInfo: snapshot.EncodeRegionInfo(values, []byte(".mob"), nil, 0),
			Families: []snapshot.FamilyFiles{{Family: "f"}}}
		for _, ref := range refs {
			r.Families[0].Files = append(r.Families[0].Files, snapshot.StoreFile{Name: ref.File, Size: int64(len(sample(t, "2.6-none.hfile")))})
		}
		m.Regions = append(m.Regions, r)
	}
	if _, err := w.run("whole", w.store, values); err != nil {
		t.Fatal(err)
	}
	relink := func() {
		w.tables[values].files = nil
		for _, f := range before.files {
			w.tables[values].files = append(w.tables[values].files, snapshot.LinkName(values, before.region, f))
		}
	}
	relink()
	w.advance(time.Hour)
	if r, err := w.run("still-listed", w.store, values); err != nil || r.Tables[0].Totals.Files != 1+len(refs) || r.Tables[0].CopiedFiles != 0 {
		t.Fatalf("%+v, %v", r.Tables, err)
	}
	listed = false
	w.advance(time.Hour)
	if r, err := w.run("not-listed", w.store, values); !hbackup.IsKind(err, hbackup.KindUnsupported) {
		t.Errorf("%+v, %v: the image lacks the MOB files that it needs", r.Tables, err)
	}
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "hbase", "hfile", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mobRefs gives what the sample names.
func mobRefs(t *testing.T) []hfile.MOBRef {
	t.Helper()
	b := sample(t, mobSample)
	v := hfile.NewVerifier(int64(len(b)))
	if _, err := v.Write(b); err != nil {
		t.Fatal(err)
	}
	s, err := v.Close()
	if err != nil || len(s.MOBRefs) == 0 {
		t.Fatalf("%d MOB files are named, %v", len(s.MOBRefs), err)
	}
	return s.MOBRefs
}
