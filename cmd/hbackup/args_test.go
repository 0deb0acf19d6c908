package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
)

func testApp() *program { return &program{now: fakeNow} }

// Wherever the flags stand among the arguments, the arranged line is the same.
func TestOrderOfFlagsDoesNotMatter(t *testing.T) {
	pieces := [][]string{
		{"--config", "c.yaml"}, {"--set=a.b=c"}, {"-o", "json"}, {"--quiet"}, {"--as", "ns:x"}, {"--table=ns:y"},
		{"--create-namespace"}, {"--request-id", "r"},
	}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.Permutation(pieces).Draw(t, "pieces")
		line, err := arrange(testApp().app(), slices.Concat([]string{"restore"}, slices.Concat(chosen...), []string{"ID"}))
		if err != nil {
			t.Fatal(err)
		}
		// The verb's flags come after it; global ones may also come before.
		args := []string{"restore", "ID"}
		for _, p := range chosen {
			at := rapid.IntRange(1, len(args)).Draw(t, "at")
			for at < len(args) && takesNext(args[at-1]) {
				at++
			}
			args = slices.Insert(args, at, p...)
		}
		other, err := arrange(testApp().app(), args)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		a, b := slices.Clone(line.args), slices.Clone(other.args)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) || other.format != formatJSON {
			t.Fatalf("%q\ngives %q\nnot   %q", args, b, a)
		}
	})
}

func takesNext(arg string) bool {
	return slices.Contains([]string{"--config", "-o", "--as", "--request-id"}, arg)
}

// FuzzArrange checks that no command line makes the parser panic, that what it
// refuses is the user's fault, and that what it accepts names a verb.
func FuzzArrange(f *testing.F) {
	for _, s := range []string{"", "backup --cluster prod --tables a,b", "-o json list", "restore ID -- --as", "--", "-", "---x", "config show --set a=b --set", "list --o", "help config", "--output", "\x00 =", "list --=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, err := arrange(testApp().app(), strings.Split(s, " "))
		switch {
		case err != nil:
			if hbackup.KindOf(err) != hbackup.KindUsage {
				t.Errorf("kind %q: %v", hbackup.KindOf(err), err)
			}
		case line.help:
		case len(line.path) == 0 || !slices.Contains(line.args, "--") || line.args[0] != "hbackup":
			t.Errorf("%q gives %q", s, line.args)
		}
	})
}

func TestNothingIsAFlagBehindTwoDashes(t *testing.T) {
	line, err := arrange(testApp().app(), []string{"describe", "--", "--cluster"})
	if err != nil || line.args[len(line.args)-1] != "--cluster" || line.args[len(line.args)-2] != "--" {
		t.Errorf("%q, %v", line.args, err)
	}
}
