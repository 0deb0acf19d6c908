package snapshot

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
)

// compare checks that a composition shows, for each row and family, just the cells
// that the model shows.
func compare(w *model, c *Composition) {
	t := w.t
	staged := map[Target]Staged{}
	paths := map[string]bool{}
	for _, s := range c.Staged {
		if paths[s.Path] {
			t.Fatalf("%s is staged twice", s.Path)
		}
		paths[s.Path] = true
	}
	seq, err := Targets(c.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	targets := map[Target]bool{}
	for target := range seq {
		targets[target] = true
		if !paths[target.ArchivePath()] {
			t.Fatalf("%s is in the manifest but not staged", target)
		}
		if target.Table != stageTable("job") {
			t.Fatalf("%s is outside of the job's staging path", target)
		}
	}
	if len(targets) != len(c.Staged) {
		t.Fatalf("%d files in the manifest, %d staged", len(targets), len(c.Staged))
	}
	for _, s := range c.Staged {
		n, err := ParseFileName(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		from, _ := ParseFileName(s.From.File)
		if n.seqIDSuffix() != from.seqIDSuffix() || n.File == s.From.File {
			t.Fatalf("%s is staged as %s", s.From, n)
		}
		if s.Size != int64(len(w.store[s.From])) {
			t.Fatalf("%s has %d bytes, not %d", s.From, len(w.store[s.From]), s.Size)
		}
		staged[n.target(&Region{}, s.Family)] = s
	}
	for i := range c.Manifest.Regions {
		r := &c.Manifest.Regions[i]
		if r.Split || r.Offline {
			t.Fatalf("region %s is offline or split", r.Encoded)
		}
		for _, ff := range r.Families {
			got := cells{}
			for _, f := range ff.Files {
				n, err := ParseFileName(f.Name)
				if err != nil || n.IsReference() || f.Ref != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				s, ok := staged[n.target(r, ff.Family)]
				if !ok || s.Region != r.Encoded {
					t.Fatalf("%s in region %s is staged as %+v", f.Name, r.Encoded, s)
				}
				maps.Copy(got, w.store[s.From])
			}
			want := cells{}
			for _, leaf := range w.leaves() {
				for _, e := range leaf.files[ff.Family] {
					for x := range w.shown(leaf, ff.Family, e) {
						if !leaf.has(x.row) {
							t.Fatalf("the model shows row %q in region [%q,%q)", x.row, leaf.start, leaf.end)
						}
						if _, in := r.keys().intersect(keyRange{[]byte(x.row), []byte(x.row + "\x00")}); in {
							want[x] = true
						}
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("region %s %s, family %s shows %v, want %v", r.Encoded, r.keys(), ff.Family, got, want)
			}
		}
	}
}

// A composition shows every row as HBase showed it, or is refused.
func TestComposeAgainstModel(t *testing.T) {
	var composed, refused, joined, merged int
	check := func(t *rapid.T) {
		w := newModel(t)
		for range rapid.IntRange(0, 14).Draw(t, "steps") {
			w.step()
		}
		m := w.manifest()
		o := ComposeOptions{Name: "composed", Job: "job"}
		rows := rapid.Bool().Draw(t, "files can be looked into")
		if rows {
			o.Rows = w.look
		}
		c, err := Compose(m, o)
		if err != nil {
			if !hbackup.IsKind(err, hbackup.KindUnsupported) {
				t.Fatalf("refused with another kind: %v", err)
			}
			if rows && !w.compacted && !w.lostParents {
				t.Fatalf("nothing was ever compacted, all can be seen, and it is refused: %v", err)
			}
			for _, part := range []string{"region ", "family ", "file "} {
				if !strings.Contains(err.Error(), part) {
					t.Fatalf("the %sis not named: %v", part, err)
				}
			}
			if hbackup.HintOf(err) == "" {
				t.Fatalf("no hint: %v", err)
			}
			refused++
			return
		}
		composed++
		if len(c.Manifest.Regions) < len(w.leaves()) {
			joined++
		}
		for _, r := range w.leaves() {
			for _, list := range r.files {
				for _, e := range list {
					if row := ""; e.ref != nil && e.ref.Top {
						b, _ := e.ref.SplitRow()
						if row = string(b); row != r.start {
							merged++
						}
					}
				}
			}
		}
		compare(w, c)

		again, err := Compose(m, o)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("composed again it differs: %v", err)
		}
		raw, err := EncodeManifest(c.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		back.Description = c.Manifest.Description
		if _, err := Compose(back, o); err != nil {
			t.Fatalf("the composition cannot be composed: %v", err)
		}
	}
	for range 30 { // some cases are rare
		rapid.Check(t, check)
	}
	t.Logf("%d composed, %d with joined daughters, %d with merged parents; %d refused", composed, joined, merged, refused)
	if composed == 0 || refused == 0 || joined == 0 || merged == 0 {
		t.Error("a case was never met")
	}
}
