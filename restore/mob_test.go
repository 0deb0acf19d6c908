package restore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// mobFile gives the one MOB file of the image: where it belongs and its bytes.
func (w *world) mobFile() (snapshot.Target, []byte) {
	w.t.Helper()
	mob := w.image.manifest.Regions[4]
	target, err := snapshot.Resolve(&mob, "big", mob.Families[0].Files[0])
	if err != nil {
		w.t.Fatal(err)
	}
	data, ok := w.image.bytes[storage.Key(target.ArchivePath())]
	if !ok {
		w.t.Fatalf("the image has no %s", target)
	}
	return target, data
}

func (w *world) place(at string, data []byte) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(at, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// A MOB file that the source table itself, or another table, still uses on this
// cluster is not copied beside it.
func TestMOBFileInUse(t *testing.T) {
	for _, place := range []func(string, snapshot.Target) string{snapshot.MOBPath, snapshot.ArchivePath} {
		w := newWorld(t)
		target, data := w.mobFile()
		at := place(w.c.root, target)
		w.place(at, data)
		res, err := w.run()
		if err != nil || res.CopiedFiles != 6 {
			t.Fatalf("%+v, %v", res, err)
		}
		if _, err := os.Stat(snapshot.ArchivePath(w.c.root, target)); (err == nil) != (at == snapshot.ArchivePath(w.c.root, target)) {
			t.Errorf("with one at %s, in the archive: %v", at, err)
		}
	}
}

// HBase reads whatever has a MOB file's name, in its own table's folder first: a
// restore beside a damaged one would make a table of damaged values.
func TestADamagedMOBFileIsNeitherUsedNorTouched(t *testing.T) {
	for _, place := range []func(string, snapshot.Target) string{snapshot.MOBPath, snapshot.ArchivePath} {
		for name, damage := range map[string]func([]byte) []byte{
			"flipped": func(b []byte) []byte { b[0] ^= 1; return b },
			"shorter": func(b []byte) []byte { return b[1:] },
			"longer":  func(b []byte) []byte { return append(b, 0) },
			"empty":   func([]byte) []byte { return nil },
		} {
			w := newWorld(t)
			target, data := w.mobFile()
			at := place(w.c.root, target)
			damaged := damage(slices.Clone(data))
			w.place(at, damaged)
			_, err := w.run()
			if !hbackup.IsKind(err, hbackup.KindConflict) || !strings.Contains(err.Error(), at) || !strings.Contains(hbackup.HintOf(err), "move") {
				t.Fatalf("%s at %s: %v (%s)", name, at, err, hbackup.HintOf(err))
			}
			if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, damaged) {
				t.Errorf("%s at %s: it was touched (%v)", name, at, err)
			}
			if s, n := w.c.snapshots(), w.c.staged(); len(s) > 0 || n > 0 || len(w.c.tables) > 0 {
				t.Errorf("left: snapshots %q, %d staged files, tables %v", s, n, w.c.tables)
			}
			if err := os.Rename(at, filepath.Join(w.c.root, "aside")); err != nil {
				t.Fatal(err)
			}
			if _, err := w.run(); err != nil {
				t.Fatal(err)
			}
			w.checkDone()
		}
	}
}

// Two restores of one image need the same MOB file in the same place. Whoever is
// second takes what the first has published and removes nothing of it.
func TestTwoRestoresNeedOneMOBFile(t *testing.T) {
	for name, other := range map[string]func([]byte) []byte{
		"the same":    func(b []byte) []byte { return b },
		"another one": func(b []byte) []byte { return b[1:] },
	} {
		w := newWorld(t)
		target, data := w.mobFile()
		at := snapshot.ArchivePath(w.c.root, target)
		w.g.before = func(_ int, op string) error {
			if strings.HasPrefix(op, "publish ") {
				w.place(at, other(data))
			}
			if (strings.HasPrefix(op, "remove ") || strings.HasPrefix(op, "create ")) && strings.HasSuffix(op, at) {
				t.Errorf("%s: %s", name, op)
			}
			return nil
		}
		_, err := w.run()
		if name == "the same" {
			if err != nil {
				t.Fatal(err)
			}
			w.checkDone()
		} else if !hbackup.IsKind(err, hbackup.KindConflict) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, other(data)) {
			t.Errorf("%s: it was touched (%v)", name, err)
		}
	}
}

// A run that is killed while it writes a MOB file leaves nothing half-written
// under the name that HBase reads.
func TestAMOBFileIsNeverSeenHalfWritten(t *testing.T) {
	w := newWorld(t)
	target, data := w.mobFile()
	w.runKilled(t, func(op string) bool {
		return strings.HasPrefix(op, "close ") && strings.HasSuffix(op, target.File)
	})
	if _, err := os.Stat(snapshot.ArchivePath(w.c.root, target)); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
	if got, err := os.ReadFile(snapshot.ArchivePath(w.c.root, target)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// HBase's cleaners remove empty folders of the archive, too, at any moment.
func TestTheFolderOfAMOBFileIsRemovedUnderTheRun(t *testing.T) {
	w := newWorld(t)
	target, _ := w.mobFile()
	dir := filepath.Dir(snapshot.ArchivePath(w.c.root, target))
	removed := 0
	w.g.before = func(_ int, op string) error {
		if strings.HasPrefix(op, "publish ") && removed == 0 {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
			removed++
		}
		return nil
	}
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
	if removed != 1 {
		t.Errorf("removed %d times", removed)
	}
}
