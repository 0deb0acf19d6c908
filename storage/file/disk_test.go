package file

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hbackup"
	"hbackup/storage"
)

func hasKind(err error, kind hbackup.Kind) bool { return hbackup.IsKind(err, kind) }

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOrderOfSteps writes down what is made durable when. A file is synced
// before it is published, and every directory above it before the put is done.
func TestOrderOfSteps(t *testing.T) {
	for _, named := range []bool{false, true} {
		s := openStore(t, t.TempDir())
		s.named = named
		var steps []string
		s.trace = func(step string) { steps = append(steps, step) }
		expect := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(steps, want) {
				t.Errorf("%s did %q; want %q", what, steps, want)
			}
			steps = nil
		}
		put := func(key storage.Key, ifAbsent bool) error {
			_, err := storage.PutBytes(t.Context(), s, key, []byte("x"), ifAbsent)
			return err
		}
		if err := errors.Join(put("a/b/1", true)); err != nil {
			t.Fatal(err)
		}
		expect("the first put", "sync file", "sync directory of /a", "sync directory of /a/b", "publish", "sync directory")
		if err := put("a/b/2", true); err != nil {
			t.Fatal(err)
		}
		expect("the second put", "sync file", "publish", "sync directory")
		if err := put("a/b/2", false); err != nil {
			t.Fatal(err)
		}
		expect("an overwrite", "sync file", "publish", "sync directory")
		if _, err := s.DeleteBatch(t.Context(), []storage.Key{"a/b/1", "a/b/2"}); err != nil {
			t.Fatal(err)
		}
		expect("the deletes", "sync directory")
		if err := put("a/b/1", true); err != nil {
			t.Fatal(err)
		}
		expect("a put after the directories were pruned", "sync file", "sync directory of /a", "sync directory of /a/b", "publish", "sync directory")
		other := openStore(t, s.path) // another process: it trusts no directory
		other.trace = s.trace
		if _, err := storage.PutBytes(t.Context(), other, "a/b/1", []byte("y"), true); !hasKind(err, hbackup.KindExists) {
			t.Fatalf("Put of a taken key gave %v", err)
		}
		expect("a put that lost", "sync directory of /a", "sync directory of /a/b")
	}
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "location")
	for _, named := range []bool{false, true} {
		s := openStore(t, path)
		s.named = named
		if _, err := storage.PutBytes(t.Context(), s, "a/b", []byte("x"), false); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]os.FileMode{"": 0o700, "a": 0o700, "a/b": 0o600} {
			info, err := os.Stat(filepath.Join(path, name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%q has mode %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
}

func TestMissingLocation(t *testing.T) {
	base := t.TempDir()
	s := openStore(t, base+"/not-mounted/backups")
	_, putErr := storage.PutBytes(t.Context(), s, "a", []byte("x"), true)
	var listErr error
	for _, listErr = range s.List(t.Context(), "", storage.ListOptions{}) {
	}
	for op, err := range map[string]error{"Put": putErr, "List": listErr, "Delete": s.Delete(t.Context(), "a")} {
		if !hasKind(err, hbackup.KindNotFound) || !strings.Contains(err.Error(), base+"/not-mounted/backups") || hbackup.HintOf(err) == "" {
			t.Errorf("%s gave %v, hint %q", op, err, hbackup.HintOf(err))
		}
	}
	if entries, _ := os.ReadDir(base); len(entries) > 0 {
		t.Errorf("something was made: %v", entries)
	}
	file := base + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(t.Context(), openStore(t, file), "a", []byte("x"), true); !hasKind(err, hbackup.KindConflict) {
		t.Errorf("Put in a location that is a file gave %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, place := range []storage.Place{{}, {Scheme: "s3", Host: "b", Path: "p"}, {Scheme: "file", Path: "relative"}} {
		if _, err := Open(place); !hasKind(err, hbackup.KindUsage) {
			t.Errorf("Open of %+v gave %v", place, err)
		}
	}
}

func TestSweep(t *testing.T) {
	path := t.TempDir()
	temp := filepath.Join(path, tempDir)
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	dead := deadProcess(t)
	old := time.Now().Add(-2 * abandonedAfter)
	for name, want := range map[string]struct {
		modified time.Time
		swept    bool
	}{
		world() + "~" + dead + "~AAAA":  {time.Now(), true},
		"elsewhere~" + dead + "~AAAA":   {time.Now(), false},
		"elsewhere~" + dead + "~BBBB":   {old, true},
		world() + "~1~AAAA":             {time.Now(), false},
		world() + "~x~AAAA":             {time.Now(), false},
		world() + "~" + dead + "~A~B~C": {time.Now(), false},
		"~" + dead + "~AAAA":            {time.Now(), false},
		"foreign":                       {time.Now(), false},
	} {
		full := filepath.Join(temp, name)
		if err := errors.Join(os.WriteFile(full, []byte("half"), 0o600), os.Chtimes(full, want.modified, want.modified)); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, path)
		s.named = true
		if _, err := storage.PutBytes(t.Context(), s, "a", []byte("x"), false); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(full); os.IsNotExist(err) != want.swept {
			t.Errorf("%s: swept is %v; want %v", name, os.IsNotExist(err), want.swept)
		}
		os.Remove(full)
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) > 0 {
		t.Errorf("left in %s: %v, %v", tempDir, entries, err)
	}
}

// TestShrinkingFile shortens a file under its reader.
func TestShrinkingFile(t *testing.T) {
	s := openStore(t, t.TempDir())
	if _, err := storage.PutBytes(t.Context(), s, "a", bytes.Repeat([]byte("x"), 10_000), true); err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Get(t.Context(), "a", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(filepath.Join(s.path, "a"), 5000); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(r); !hasKind(err, hbackup.KindIncomplete) || buf.Len() != 5000 {
		t.Errorf("the reader gave %d bytes and %v; want incomplete", buf.Len(), err)
	}
}
