package file

import (
	"os"
	"strings"
	"testing"

	"hbackup/check"
	"hbackup/storage"
)

var _ check.Inspector = (*Store)(nil)

// inspected gives the findings by name.
func inspected(t *testing.T, s *Store) map[string]storage.Finding {
	t.Helper()
	found := map[string]storage.Finding{}
	for _, f := range s.Inspect(t.Context(), "probe/x/", storage.Terms{Writable: true}) {
		if found[f.Name].Name != "" || f.Detail == "" || f.Verdict != storage.Fine && f.Hint == "" {
			t.Errorf("%+v", f)
		}
		found[f.Name] = f
	}
	return found
}

func TestInspect(t *testing.T) {
	for _, named := range []bool{false, true} {
		dir := t.TempDir()
		s := openStore(t, dir)
		s.named = named
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		found := inspected(t, s)
		for name, says := range map[string]string{"hard links": "refused", "fsync": "directories", "mode": "0700", "free space": "GiB of"} {
			if f := found[name]; f.Verdict == storage.Harmful || !strings.Contains(f.Detail, says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if f := inspected(t, s)["mode"]; f.Verdict != storage.Caution || !strings.Contains(f.Hint, "chmod 0700 "+dir) {
			t.Errorf("%+v", f)
		}
		if left, err := os.ReadDir(dir + "/" + tempDir); len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	s := openStore(t, t.TempDir()+"/missing")
	if f := s.Inspect(t.Context(), "probe/x/", storage.Terms{}); len(f) != 1 || f[0].Verdict != storage.Harmful || f[0].Err == nil {
		t.Errorf("%+v", f)
	}
}
