package storage

import (
	"strings"
	"testing"
)

func TestKeyValidate(t *testing.T) {
	long := strings.Repeat("n", MaxSegmentBytes)
	for key, valid := range map[Key]bool{
		"a": true, "a/b/c": true, ".hidden": true, "...": true, "a b": true, "ä": true, "a%2F": true, "\u00a0": true, "a\\b": true,
		Key(long): true, Key(long + "n"): false, Key("x/" + long + "n/y"): false,
		Key(strings.Repeat("d/", MaxKeyBytes/2-1) + "xx"): true, Key(strings.Repeat("d/", MaxKeyBytes/2) + "x"): false,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/./b": false,
		"a\x00": false, "a\n": false, "a\x7f": false, "a\xff": false, "a:b": false,
	} {
		if err := key.Validate(); (err == nil) != valid {
			t.Errorf("%.40q: %v; want valid %v", key, err, valid)
		}
	}
}

func TestJoin(t *testing.T) {
	if got := Join("a", "", "b/c", "d"); got != "a/b/c/d" {
		t.Errorf("Join gave %q", got)
	}
	if got := Join(); got != "" {
		t.Errorf("Join of nothing gave %q", got)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a/b")
	f.Add("../x")
	f.Add("a//b")
	f.Fuzz(func(t *testing.T, s string) {
		if Key(s).Validate() != nil {
			return
		}
		for _, bad := range []string{"\x00", "\n", ":", "//", "/../"} {
			if strings.Contains("/"+s+"/", bad) {
				t.Errorf("%q is valid but holds %q", s, bad)
			}
		}
		if len(s) > MaxKeyBytes || strings.ToValidUTF8(s, "") != s {
			t.Errorf("%q is valid", s)
		}
	})
}
