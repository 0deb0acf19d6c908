package hfile

import (
	"slices"
	"testing"

	"hbackup"
)

func TestMOBRefs(t *testing.T) {
	a, b := hbackup.TableName{Namespace: "default", Qualifier: "t"}, hbackup.TableName{Namespace: "ns", Qualifier: "t-1"}
	for text, want := range map[string][]MOBRef{
		"":                        nil,
		"\x00":                    nil,
		"t/one":                   {{a, "one"}},
		"t/one,two//ns:t-1/three": {{a, "one"}, {a, "two"}, {b, "three"}},
	} {
		got, err := FileInfo{KeyMobFileRefs: []byte(text)}.MOBRefs()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "/x", "t/", "t/a,", "t//b", "\x00\x00", "t/a//\x00", "a b/x", "t/a/b"} {
		if got, err := (FileInfo{KeyMobFileRefs: []byte(text)}).MOBRefs(); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// A real file of a MOB family names its MOB files; the verifier sees them in passing.
func TestMOBRefsOfARealFile(t *testing.T) {
	b := testFiles(t)["2.6-mob"]
	v := NewVerifier(int64(len(b)))
	if _, err := v.Write(b); err != nil {
		t.Fatal(err)
	}
	s, err := v.Close()
	if err != nil {
		t.Fatal(err)
	}
	if !s.InfoRead || len(s.MOBRefs) == 0 || s.MOBRefs[0].Table.String() != "t" || len(s.MOBRefs[0].File) < 70 {
		t.Errorf("read %v: %v", s.InfoRead, s.MOBRefs)
	}
}
