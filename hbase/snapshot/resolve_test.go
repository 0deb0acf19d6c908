package snapshot

import (
	"testing"

	"pgregory.net/rapid"

	"hbackup"
)

func TestResolve(t *testing.T) {
	own := hbackup.TableName{Namespace: "default", Qualifier: "own"}
	other := hbackup.TableName{Namespace: "ns", Qualifier: "other"}
	region := &Region{Encoded: hbackup.EncodedRegion(hexOf("region")), Table: own, ID: 5}
	mob := &Region{Encoded: MOBRegion(own), Table: own, StartKey: []byte(".mob")}
	parent, linked := hbackup.EncodedRegion(hexOf("parent")), hbackup.EncodedRegion(hexOf("linked"))

	for _, c := range []struct {
		what string
		in   *Region
		name FileName
		want Target
	}{
		{"plain", region, FileName{File: hexA}, Target{own, region.Encoded, "f", hexA, false}},
		{"bulk loaded", region, FileName{File: hexA + "_SeqId_4_"}, Target{own, region.Encoded, "f", hexA + "_SeqId_4_", false}},
		{"link", region, FileName{Table: other, Region: linked, File: hexA}, Target{other, linked, "f", hexA, false}},
		{"reference", region, FileName{File: hexA, Parent: parent}, Target{own, parent, "f", hexA, false}},
		{"reference to a link", region, FileName{Table: other, Region: linked, File: hexA, Parent: parent}, Target{other, linked, "f", hexA, false}},
		{"MOB file", mob, FileName{File: mobA}, Target{own, mob.Encoded, "f", mobA, true}},
		{"old MOB file", mob, FileName{File: hexA}, Target{own, mob.Encoded, "f", hexA, true}},
		{"link to a MOB file", mob, FileName{Table: other, Region: MOBRegion(other), File: mobA}, Target{other, MOBRegion(other), "f", mobA, true}},
	} {
		got, err := Resolve(c.in, "f", StoreFile{Name: c.name.String(), Size: 1})
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.what, got, err, c.want)
		}
	}
	if _, err := Resolve(region, "f", StoreFile{Name: "../x"}); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("a path as a name: %v", err)
	}
}

// sharedManifestGen makes manifests in which many names lead to few files.
var sharedManifestGen = rapid.Custom(func(t *rapid.T) *Manifest {
	table := hbackup.TableName{Namespace: "default", Qualifier: "t"}
	m := &Manifest{Schema: Schema{Table: table}}
	files := []string{"a1", "a2", "a3", "a4_SeqId_1_"}
	regions := []hbackup.EncodedRegion{}
	for i := range 4 {
		regions = append(regions, EncodeRegionName(table, []byte{byte(i)}, 1, 0))
	}
	consistent := rapid.IntRange(0, 9).Draw(t, "consistent") > 0
	for i, encoded := range regions {
		r := Region{Encoded: encoded, ID: 1, Table: table, StartKey: []byte{byte(i)}}
		for _, f := range []hbackup.Family{"x", "y"} {
			names := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) FileName {
				n := FileName{File: rapid.SampledFrom(files).Draw(t, "file")}
				form := rapid.IntRange(0, 3).Draw(t, "form")
				if form&1 != 0 {
					n.Table, n.Region = table, rapid.SampledFrom(regions).Draw(t, "linked")
				}
				if form&2 != 0 {
					n.Parent = rapid.SampledFrom(regions).Draw(t, "parent")
				}
				return n
			}), 0, 6, FileName.String).Draw(t, "names")
			ff := FamilyFiles{Family: f}
			for _, n := range names {
				size := int64(-1)
				if rapid.Bool().Draw(t, "sized") {
					target := n.target(&r, f)
					size = int64(target.Region[0])*100 + int64(target.File[1]) // any function of the target
					if !consistent && rapid.IntRange(0, 3).Draw(t, "wrong") == 0 {
						size++
					}
				}
				ff.Files = append(ff.Files, StoreFile{Name: n.String(), Size: size})
			}
			r.Families = append(r.Families, ff)
		}
		m.Regions = append(m.Regions, r)
	}
	return m
})

func TestTargetsAgainstAMap(t *testing.T) {
	conflicts := 0
	rapid.Check(t, func(t *rapid.T) {
		m := sharedManifestGen.Draw(t, "manifest")
		sizes := map[Target]int64{}
		var order []Target
		conflict := false
		for i := range m.Regions {
			r := &m.Regions[i]
			for _, ff := range r.Families {
				for _, f := range ff.Files {
					target, err := Resolve(r, ff.Family, f)
					if err != nil {
						t.Fatal(err)
					}
					old, seen := sizes[target]
					if !seen {
						order = append(order, target)
						old = -1
					}
					if old >= 0 && f.Size >= 0 && old != f.Size {
						conflict = true
					}
					sizes[target] = max(old, f.Size)
				}
			}
		}
		seq, err := Targets(m)
		if conflict {
			conflicts++
			if !hbackup.IsKind(err, hbackup.KindCorrupt) {
				t.Fatalf("a conflict of sizes is not reported: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the sequence can be walked again
			i := 0
			for target, size := range seq {
				if i >= len(order) || target != order[i] || size != sizes[target] {
					t.Fatalf("number %d is %v with %d bytes", i, target, size)
				}
				i++
			}
			if i != len(order) {
				t.Fatalf("%d targets, want %d", i, len(order))
			}
		}
		for range seq { // and left early
			break
		}
	})
	if conflicts == 0 && !testing.Short() { // which draws too few to be sure of one
		t.Error("no generated manifest had a conflict")
	}
}

func TestRegionNames(t *testing.T) {
	table := hbackup.TableName{Namespace: "ns", Qualifier: "t"}
	for replica, want := range map[int32]string{0: "ns:t,row,1234", 1: "ns:t,row,1234_0001", 0xABC: "ns:t,row,1234_0ABC"} {
		if got := string(AppendRegionName(nil, table, []byte("row"), 1234, replica)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// MD5 of "t,,1", computed elsewhere.
	if got := EncodeRegionName(hbackup.TableName{Namespace: "default", Qualifier: "t"}, nil, 1, 0); got != "7b520268c67d8870e20f6d880327ab7e" {
		t.Errorf("got %s", got)
	}
}
