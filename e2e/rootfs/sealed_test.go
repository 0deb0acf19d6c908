package rootfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rootfs/rootfstest"
)

// sealed has data nodes that want every byte encrypted on the way: only the
// library can then see and verify the data.
var sealed = servers.Settings{
	"dfs.block.access.token.enable": "true", "dfs.encrypt.data.transfer": "true",
	"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
}

func TestSealedData(t *testing.T) {
	fs, _ := startOwn(t, sealed)
	rootfstest.Run(t, fs, directory(t, fs), 1)
}

// A replica that has rotted on the data node's disk is corrupt, and none of its
// bytes come as if they were good.
func TestRottenReplica(t *testing.T) {
	for name, extra := range map[string]servers.Settings{"clear": nil, "sealed": sealed} {
		t.Run(name, func(t *testing.T) {
			hdfs, dir := startOwn(t, extra)
			want := content(777_777)
			p := path.Join(directory(t, hdfs), "f")
			write(t, hdfs, p, want)
			const at = 500_000
			rot(t, dir, int64(len(want)), at)
			r, _, err := hdfs.Open(t.Context(), p, 0)
			must(t, err)
			defer r.Close()
			got, err := io.ReadAll(r)
			wantKind(t, err, hbackup.KindCorrupt)
			if len(got) > at || string(got) != string(want[:len(got)]) {
				t.Errorf("%d bytes came, the one at %d is bad", len(got), at)
			}
		})
	}
}

func startOwn(t *testing.T, extra servers.Settings) (rootfs.FS, string) {
	t.Helper()
	settings := servers.Settings{"dfs.blocksize": "1048576"}
	for k, v := range extra {
		settings[k] = v
	}
	dir := t.TempDir()
	h, err := servers.StartHDFS(t.Context(), servers.HDFSOptions{Dir: dir, Extra: settings})
	must(t, err)
	t.Cleanup(func() { h.Stop() })
	fs, err := rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{h.Address()}, User: h.User(), RetryFor: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs, dir
}

// rot changes a byte of the only block of a size.
func rot(t *testing.T, dir string, size, at int64) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "blk_") || strings.HasSuffix(d.Name(), ".meta") {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() != size {
			return err
		}
		found++
		f, err := os.OpenFile(p, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			return err
		}
		b[0] ^= 1
		_, err = f.WriteAt(b, at)
		return err
	})
	must(t, err)
	if found != 1 {
		t.Fatalf("%d blocks of %d bytes", found, size)
	}
}
