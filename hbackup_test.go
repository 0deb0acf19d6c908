package hbackup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
)

func TestTableNames(t *testing.T) {
	for s, want := range map[string]hbackup.TableName{
		"orders":         {Namespace: "default", Qualifier: "orders"},
		"default:orders": {Namespace: "default", Qualifier: "orders"},
		"ns:a-b.c_d":     {Namespace: "ns", Qualifier: "a-b.c_d"},
		"größe:_x":       {Namespace: "größe", Qualifier: "_x"},
	} {
		got, err := hbackup.ParseTableName(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		if back, err := hbackup.ParseTableName(got.String()); err != nil || back != want {
			t.Errorf("%q comes back as %+v, %v", got, back, err)
		}
	}
	for _, s := range []string{"", ":", "ns:", ":q", "a:b:c", "ns:-x", "ns:.x", "n-s:x", "a/b", "ns:..", "a b", "ns:a\x00", "\xff", "a=b", "n.s:x"} {
		if got, err := hbackup.ParseTableName(s); err == nil {
			t.Errorf("%q was read as %+v", s, got)
		}
	}
}

// Whatever is accepted as a name is two safe path segments.
func FuzzParseTableName(f *testing.F) {
	f.Add("ns:orders")
	f.Add("../..:x")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := hbackup.ParseTableName(s)
		if err != nil {
			return
		}
		if segments := strings.Split(n.Path(), "/"); len(segments) != 2 || slices.ContainsFunc(segments, func(s string) bool { return s == "" || s == "." || s == ".." }) {
			t.Fatalf("%q gives the path %q", s, n.Path())
		}
		if back, err := hbackup.ParseTableName(n.String()); err != nil || back != n {
			t.Fatalf("%q comes back as %+v, %v", s, back, err)
		}
	})
}

func TestIDsSortByTimeAndAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := time.UnixMilli(rapid.Int64Range(0, 4102444800000).Draw(t, "a"))
		b := time.UnixMilli(rapid.Int64Range(0, 4102444800000).Draw(t, "b"))
		x, y := hbackup.NewBackupID(a), hbackup.NewBackupID(b)
		if a.Before(b) && x >= y || b.Before(a) && y >= x {
			t.Fatalf("%s of %s and %s of %s sort wrongly", x, a, y, b)
		}
		got, err := x.Time()
		if err != nil || !got.Equal(a) {
			t.Fatalf("%s holds the time %s (%v), not %s", x, got, err, a)
		}
		i := x.Image(rapid.IntRange(0, 100000).Draw(t, "n"))
		if back, err := i.Backup(); err != nil || back != x {
			t.Fatalf("%s belongs to %s (%v)", i, back, err)
		}
	})
	// Of runs that two hosts begin in the same millisecond each keeps its images
	// together, in the order of its tables, and all sort the same whoever sorts.
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 4102444800000).Draw(t, "at"))
		var sorted, other []hbackup.ImageID
		for range rapid.IntRange(2, 5).Draw(t, "runs") {
			run := hbackup.NewBackupID(at)
			for n := range rapid.IntRange(1, 20).Draw(t, "tables") {
				sorted = append(sorted, run.Image(n))
			}
		}
		other = rapid.Permutation(sorted).Draw(t, "order")
		slices.Sort(sorted)
		slices.Sort(other)
		if !slices.Equal(sorted, other) {
			t.Fatalf("%q and %q", sorted, other)
		}
		next := map[hbackup.BackupID]int{}
		for i, id := range sorted {
			run, err := id.Backup()
			if err != nil || id != run.Image(next[run]) || next[run] > 0 && sorted[i-1] != run.Image(next[run]-1) {
				t.Fatalf("%s is out of order in %q (%v)", id, sorted, err)
			}
			next[run]++
		}
	})
	at, seen := time.Now(), map[hbackup.BackupID]bool{}
	for range 10_000 {
		id := hbackup.NewBackupID(at)
		if seen[id] {
			t.Fatalf("%s came twice in one millisecond", id)
		}
		seen[id] = true
	}
}

func TestTimesNeedAZone(t *testing.T) {
	for s, want := range map[string]string{
		"2026-11-30T23:05:01Z":          "2026-11-30T23:05:01.000Z",
		"2026-11-30T23:05:01.5+01:00":   "2026-11-30T22:05:01.500Z",
		"2026-11-30T23:05:01.123-08:00": "2026-12-01T07:05:01.123Z",
	} {
		got, err := hbackup.ParseTime(s)
		if err != nil || hbackup.FormatTime(got) != want {
			t.Errorf("%s: %s, %v", s, hbackup.FormatTime(got), err)
		}
	}
	for _, s := range []string{"2026-11-30T23:05:01", "2026-11-30 23:05", "2026-11-30", "yesterday", "", "2026-13-01T00:00:00Z"} {
		_, err := hbackup.ParseTime(s)
		if !hbackup.IsKind(err, hbackup.KindUsage) || hbackup.HintOf(err) == "" {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestKindAndHintComeFromTheOutermostThatHasOne(t *testing.T) {
	inner := hbackup.Errorf("read", "hdfs://nn/x", hbackup.KindNotFound, "gone").WithHint("look elsewhere")
	outer := fmt.Errorf("while copying: %w", hbackup.E("copy", "s3://b/x", hbackup.KindOther, inner))
	if hbackup.KindOf(outer) != hbackup.KindNotFound || hbackup.HintOf(outer) != "look elsewhere" {
		t.Errorf("kind %q, hint %q", hbackup.KindOf(outer), hbackup.HintOf(outer))
	}
	classed := hbackup.E("copy", "s3://b/x", hbackup.KindIncomplete, inner)
	if hbackup.KindOf(classed) != hbackup.KindIncomplete {
		t.Errorf("kind %q", hbackup.KindOf(classed))
	}
	if got := classed.Error(); got != "copy s3://b/x: read hdfs://nn/x: gone" {
		t.Errorf("message %q", got)
	}
	for err, want := range map[error]hbackup.Kind{
		context.Canceled: hbackup.KindInterrupted, context.DeadlineExceeded: hbackup.KindTimeout,
		errors.New("x"): hbackup.KindOther, error(nil): hbackup.KindOther,
	} {
		if got := hbackup.KindOf(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
}
