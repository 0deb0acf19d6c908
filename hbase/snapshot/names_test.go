package snapshot

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
)

const (
	hexA = "0123456789abcdef0123456789abcdef"
	hexB = "fedcba9876543210fedcba9876543210"
	mobA = hexA + "20261130" + hexB + "_" + hexA
)

func TestParseFileName(t *testing.T) {
	tab := hbackup.TableName{Namespace: "default", Qualifier: "t-1.x"}
	nst := hbackup.TableName{Namespace: "ns", Qualifier: "t"}
	for name, want := range map[string]FileName{
		hexA:                                     {File: hexA},
		"7":                                      {File: "7"},
		hexA + "_SeqId_12_":                      {File: hexA + "_SeqId_12_"},
		hexA + "_del":                            {File: hexA + "_del"},
		mobA:                                     {File: mobA},
		"t-1.x=" + hexA + "-" + hexB:             {Table: tab, Region: hexA, File: hexB},
		"ns=t=" + hexA + "-" + hexB:              {Table: nst, Region: hexA, File: hexB},
		"ns=t=" + hexA + "-" + mobA:              {Table: nst, Region: hexA, File: mobA},
		hexA + "." + hexB:                        {File: hexA, Parent: hexB},
		hexA + "_SeqId_7_." + hexB:               {File: hexA + "_SeqId_7_", Parent: hexB},
		"t-1.x=" + hexA + "-7_del." + hexB:       {Table: tab, Region: hexA, File: "7_del", Parent: hexB},
		"ns=t=" + hexA + "-" + hexB + "." + hexA: {Table: nst, Region: hexA, File: hexB, Parent: hexA},
	} {
		got, err := ParseFileName(name)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
		if got.String() != name {
			t.Errorf("%s comes back as %s", name, got)
		}
	}
}

func TestParseFileNameRefuses(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "/", "a/b", "../a", "a\x00", "A", "g", "_SeqId_1_", "a_SeqId_1", "a_SeqId__", "a_SeqId_x_", "a_SeqId_1_2_",
		"a_SeqId_9223372036854775808_", "a_dell", "a_", "a_" + hexA, mobA[1:], mobA + "0", mobA + "." + hexA,
		hexA + ".", hexA + "." + hexB[1:], hexA + "." + hexB + "." + hexA, hexA + "." + strings.ToUpper(hexB),
		"t=" + hexA, "t=" + hexA + "-", "t=" + hexA[1:] + "-" + hexB, "=" + hexA + "-" + hexB, "a=b=c=" + hexA + "-" + hexB,
		"../t=" + hexA + "-" + hexB, "..=" + hexA + "-" + hexB, ".t=" + hexA + "-" + hexB, "n/s=t=" + hexA + "-" + hexB,
		"default=t=" + hexA + "-" + hexB, "=t=" + hexA + "-" + hexB, "t=" + hexA + "-../../x", "t=" + hexA + "-" + hexA + "-" + hexB,
		strings.Repeat("a", maxFileNameLen+1),
	} {
		if n, err := ParseFileName(name); err == nil {
			t.Errorf("%q is taken as %+v", name, n)
		}
	}
}

func TestFileNameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := fileNameGen.Draw(t, "name")
		got, err := ParseFileName(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%s: got %+v, want %+v", want, got, want)
		}
	})
}

func TestSeqID(t *testing.T) {
	for name, want := range map[string]int64{"a_SeqId_12_": 12, "a_SeqId_0_": 0, "t=" + hexA + "-b_SeqId_9223372036854775807_": 1<<63 - 1} {
		n, err := ParseFileName(name)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := n.SeqID(); !ok || id != want {
			t.Errorf("%s: got %d, %v", name, id, ok)
		}
	}
	if _, ok := (FileName{File: hexA}).SeqID(); ok {
		t.Error("a plain name has a sequence id")
	}
}

func FuzzParseFileName(f *testing.F) {
	for _, s := range []string{hexA, mobA, hexA + "_SeqId_1_", "1_del", "t=" + hexA + "-" + hexB, "n=t=" + hexA + "-" + hexB + "." + hexA, "../x", "a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseFileName(s)
		if err != nil {
			return
		}
		if n.String() != s {
			t.Fatalf("%q comes back as %q", s, n.String())
		}
		target := n.target(&Region{Encoded: hexA, Table: hbackup.TableName{Namespace: "default", Qualifier: "t"}}, "f")
		if err := target.Validate(); err != nil {
			t.Fatalf("%q leads to a bad target: %v", s, err)
		}
		for _, p := range Candidates("/hbase", target) {
			if path.Clean(p) != p || strings.Count(p, "/") < 6 {
				t.Fatalf("%q leads to %q", s, p)
			}
		}
	})
}
