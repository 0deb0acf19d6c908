package catalog

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// However two files are compared, it is as their keys are.
func TestFilesCompareAsTheirKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyFile.Draw(t, "a"), anyFile.Draw(t, "b")
		if rapid.Bool().Draw(t, "same folder") {
			b.Table, b.Region = a.Table, a.Region
		}
		target := func(f File) *snapshot.Target {
			return &snapshot.Target{Table: f.Table, Region: f.Region, Family: f.Family, File: f.Name}
		}
		want := cmp.Compare(a.Key(), b.Key())
		if got := CompareFiles(a, b); got != want {
			t.Errorf("files: %d", got)
		}
		if got := CompareTargets(target(a), target(b)); got != want {
			t.Errorf("targets: %d", got)
		}
		if got := CompareFile(&a, target(b)); got != want {
			t.Errorf("file and target: %d", got)
		}
		for _, end := range []string{"", "x", "/x"} {
			key := a.Key() + storage.Key(end)
			if got, want := CompareKey(key, target(b)), cmp.Compare(key, b.Key()); got != want {
				t.Errorf("key %s: %d and not %d", key, got, want)
			}
		}
		short := a.Key()[:rapid.IntRange(0, len(a.Key())).Draw(t, "cut")]
		if got, want := CompareKey(short, target(b)), cmp.Compare(short, b.Key()); got != want {
			t.Errorf("key %s: %d and not %d", short, got, want)
		}
	})
}
