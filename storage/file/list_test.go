package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup/storage"
)

// segment draws names of few letters around '/', so that keys share prefixes
// and directories have neighbours that sort close to them.
var segment = rapid.StringOfN(rapid.SampledFrom([]rune("ab-.!0~ é")), 1, 3, -1).
	Filter(func(s string) bool { return s != "." && s != ".." })

var someKey = rapid.Custom(func(t *rapid.T) storage.Key {
	return storage.Key(strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "segments"), "/"))
})

// TestListIsSortedKeys compares listings with the sorted set of all keys.
func TestListIsSortedKeys(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		var all []storage.Key
		for _, key := range rapid.SliceOfN(someKey, 0, 40).Draw(t, "keys") {
			full := filepath.Join(path, filepath.FromSlash(string(key)))
			if os.MkdirAll(filepath.Dir(full), 0o700) != nil {
				continue // below another key
			}
			if f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				all = append(all, key)
			}
		}
		slices.Sort(all)
		s := &Store{location: "file:///x", path: path}
		for range 10 {
			prefix := string(drawNear(t, all))
			opts := storage.ListOptions{After: drawNear(t, all), Limit: rapid.IntRange(0, 5).Draw(t, "limit"),
				Folders: rapid.Bool().Draw(t, "folders"), NamesOnly: rapid.Bool().Draw(t, "names only")}
			var want []storage.Key
			for _, key := range all {
				if opts.Folders && strings.HasPrefix(string(key), prefix) && storage.FolderOf(key, prefix) != "" {
					if key = storage.FolderOf(key, prefix); slices.Contains(want, key) {
						continue
					}
				}
				if strings.HasPrefix(string(key), prefix) && key > opts.After && (opts.Limit == 0 || len(want) < opts.Limit) {
					want = append(want, key)
				}
			}
			var got []storage.Key
			for obj, err := range s.List(t.Context(), prefix, opts) {
				if err != nil {
					t.Fatalf("List %q %+v: %v", prefix, opts, err)
				}
				got = append(got, obj.Key)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("of %q, List %q %+v gave %q; want %q", all, prefix, opts, got, want)
			}
		}
	})
}

// drawNear draws nothing, a part of a key that is there, or any key.
func drawNear(t *rapid.T, all []storage.Key) storage.Key {
	how := rapid.IntRange(0, 3).Draw(t, "how")
	if how == 0 || len(all) == 0 {
		return ""
	}
	if how == 1 {
		return someKey.Draw(t, "other")
	}
	key := rapid.SampledFrom(all).Draw(t, "key")
	return key[:rapid.IntRange(0, len(key)).Draw(t, "cut")]
}

// TestForeignThings has things in the directory that are no objects.
func TestForeignThings(t *testing.T) {
	outside := t.TempDir()
	path := t.TempDir()
	s := openStore(t, path)
	for _, name := range []string{"a/b", "lost+found/x", ".hbackup-tmp/y", "a/.nfs00000000000000000001", "a/with:colon", "a/new\nline", "a/bad\xff"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link-dir": outside, "link-file": filepath.Join(outside, "secret"), "a/link-in": "b", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	mkfifo(t, filepath.Join(path, "a/pipe"))
	if err := os.MkdirAll(filepath.Join(path, "empty/dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	var got []storage.Key
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, obj.Key)
	}
	if !slices.Equal(got, []storage.Key{"a/b"}) {
		t.Errorf("List gave %q", got)
	}
	for _, key := range []storage.Key{"link-dir/secret", "link-file", "a/link-in", "dangling", "a/pipe", "empty/dir", "empty"} {
		if _, err := s.Stat(t.Context(), key); !isMissing(err) && !hasKind(err, "not_found") {
			t.Errorf("Stat %s gave %v", key, err)
		}
		if _, _, err := s.Get(t.Context(), key, storage.Range{}); !hasKind(err, "not_found") {
			t.Errorf("Get %s gave %v", key, err)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete %s gave %v", key, err)
		}
	}
	if _, err := storage.PutBytes(t.Context(), s, "link-dir/planted", []byte("x"), true); !hasKind(err, "conflict") {
		t.Errorf("Put through a link to a directory gave %v", err)
	}
	for _, key := range []storage.Key{".hbackup-tmp/y", "lost+found/x", "lost+found"} {
		if _, err := storage.PutBytes(t.Context(), s, key, []byte("x"), false); !hasKind(err, "usage") {
			t.Errorf("Put of the reserved %s gave %v", key, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "x" {
		t.Errorf("the file outside was touched: %q, %v", data, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("the directory outside was touched: %v, %v", entries, err)
	}
}
