package file

import (
	"os"
	"strings"
	"testing"

	"hbackup/storage"
)

func TestInspectATinyFileSystem(t *testing.T) {
	onTmpfs(t, "size=4m", func(path string) {
		s := openStore(t, path)
		found := inspected(t, s)
		if f := found["file system"]; f.Verdict != storage.Caution || !strings.Contains(f.Detail, "memory") {
			t.Errorf("%+v", f)
		}
		if err := os.WriteFile(path+"/filler", make([]byte, 4000<<10), 0o600); err != nil {
			t.Error(err)
		}
		if f := inspected(t, s)["free space"]; f.Verdict != storage.Caution {
			t.Errorf("%+v", f)
		}
	})
}
