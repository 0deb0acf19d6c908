package rootfs_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"hbackup"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rootfs/rootfstest"
)

func TestLocal(t *testing.T) {
	rootfstest.Run(t, rootfs.Local(), t.TempDir(), 1)
}

func TestLocalHidesHadoopChecksums(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"f", ".f.crc", ".other.crc", "x.crc"} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fs := rootfs.Local()
	infos, err := fs.ReadDir(t.Context(), dir)
	if err != nil || len(infos) != 2 || infos[0].Name != "f" || infos[1].Name != "x.crc" {
		t.Fatalf("listed %+v, %v", infos, err)
	}
	if err := fs.Remove(t.Context(), filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	w, err := fs.Create(t.Context(), filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{".f.crc", ".other.crc"} {
		if _, err := os.Stat(filepath.Join(dir, n)); !os.IsNotExist(err) {
			t.Errorf("%s: stale checksums are still there (%v)", n, err)
		}
	}
}

func TestLocalShrunkFile(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	r, _, err := rootfs.Local().Open(t.Context(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(p, 600); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if !hbackup.IsKind(err, hbackup.KindIncomplete) || len(b) != 600 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
}

func TestLocalGrownFile(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	r, info, err := rootfs.Local().Open(t.Context(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(p, make([]byte, 5000), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil || int64(len(b)) != info.Size {
		t.Fatalf("%d bytes of %d, %v", len(b), info.Size, err)
	}
}
