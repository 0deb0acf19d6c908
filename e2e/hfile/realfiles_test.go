// Package hfile checks hbackup/hbase/hfile on store files that real HBase servers
// of every version write, and collects the small ones that its tests keep.
package hfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hbackup/e2e/servers"
	"hbackup/hbase/hfile"
)

// families gives the kinds of store files that a version can write without
// native libraries. The name tells codec, encoding and what else is special.
func families(v servers.Version) []servers.FamilySpec {
	out := []servers.FamilySpec{
		{Name: "none"},
		{Name: "gz_diff", Compression: "GZ", Encoding: "DIFF", Bloom: "ROWCOL"},
		{Name: "crc32_fastdiff", Encoding: "FAST_DIFF", Configuration: map[string]string{"hbase.hstore.checksum.algorithm": "CRC32"}},
	}
	if v != servers.HBase26 {
		return out
	}
	return append(out,
		servers.FamilySpec{Name: "snappy_rowindex", Compression: "SNAPPY", Encoding: "ROW_INDEX_V1"},
		servers.FamilySpec{Name: "zstd_prefix", Compression: "ZSTD", Encoding: "PREFIX"},
		servers.FamilySpec{Name: "nullsums", Configuration: map[string]string{"hbase.hstore.checksum.algorithm": "NULL"}},
		servers.FamilySpec{Name: "levels", BlockSize: 1024, Configuration: map[string]string{
			"hfile.index.block.max.size": "300", "hfile.index.block.min.entries": "2", "hbase.hstore.bytes.per.checksum": "64", "io.storefile.bloom.block.size": "64"}},
		servers.FamilySpec{Name: "mob", MOB: true, MOBThreshold: 100, Bloom: "NONE"},
		servers.FamilySpec{Name: "aes_gz", Compression: "GZ", Attributes: map[string]string{"ENCRYPTION": "AES"}},
	)
}

// TestRealFiles has each version write files of all kinds and checks every
// store file below its root, HBase's own tables included. With HFILE_TESTDATA set
// to a directory the files of the test's table are copied there.
func TestRealFiles(t *testing.T) {
	for _, v := range servers.Versions() {
		t.Run(string(v), func(t *testing.T) {
			extra := servers.Settings{}
			if v == servers.HBase26 {
				extra = keyStore(t)
			}
			c, err := servers.StartCluster(t.Context(), servers.ClusterOptions{Version: v, LocalRoot: true, HBase: extra})
			must(t, err)
			defer c.Stop()
			must(t, c.CreateTable(t.Context(), servers.TableSpec{Name: "t", Families: families(v), SplitKeys: servers.HexSplits(2)}))
			load := servers.Mixed(1, 50)
			load.Qualifiers, load.BigPercent, load.BigBytes = 2, 10, 300
			_, err = c.Load(t.Context(), "t", load)
			must(t, err)
			if v == servers.HBase26 { // enough blocks for an index of several levels
				_, err = c.Load(t.Context(), "t", servers.LoadSpec{Seed: 3, From: 500, Rows: 150, Families: []string{"levels"}, ValueBytes: 100})
				must(t, err)
			}
			must(t, c.Flush(t.Context(), "t"))
			bulk := servers.LoadSpec{Seed: 2, From: 1000, Rows: 20, Families: []string{"none"}, ValueBytes: 10}
			_, err = c.BulkLoad(t.Context(), "t", bulk)
			must(t, err)
			check(t, string(v), strings.TrimPrefix(c.Root(), "file://"), len(families(v)))
			must(t, c.MajorCompact(t.Context(), "t"))
			check(t, "", strings.TrimPrefix(c.Root(), "file://"), len(families(v)))
		})
	}
}

// keyStore makes the master key for encrypted families.
func keyStore(t *testing.T) servers.Settings {
	file := filepath.Join(t.TempDir(), "keys.jceks")
	out, err := exec.CommandContext(t.Context(), "keytool", "-genseckey", "-keystore", file, "-storetype", "jceks",
		"-storepass", "password", "-keypass", "password", "-alias", "hbase", "-keyalg", "AES", "-keysize", "128").CombinedOutput()
	if err != nil {
		t.Fatalf("keytool: %v: %s", err, out)
	}
	return servers.Settings{
		"hbase.crypto.keyprovider":            "org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider",
		"hbase.crypto.keyprovider.parameters": "jceks://" + file + "?password=password",
		"hbase.crypto.master.key.name":        "hbase",
	}
}

// check verifies every store file below root; a name prefix asks for copies.
func check(t *testing.T, prefix, root string, atLeast int) {
	t.Helper()
	files, entries := 0, int64(0)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // archived under our eyes
		}
		family := filepath.Base(filepath.Dir(p))
		inside := strings.Contains(p, "/data/") || strings.Contains(p, "/mobdir/")
		if d.IsDir() || !inside || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(family, ".") || strings.HasPrefix(family, "recovered") ||
			strings.HasSuffix(d.Name(), ".seqid") || strings.Contains(p, "/.tmp/") {
			return nil
		}
		s, err := verify(p)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		files++
		entries += s.Entries
		if s.Checksummed == (family == "nullsums") || s.Encrypted != (family == "aes_gz") {
			t.Errorf("%s: %+v", p, s)
		}
		if to := os.Getenv("HFILE_TESTDATA"); to != "" && prefix != "" && (strings.Contains(p, "/t/") || strings.Contains(p, "/mobdir/")) {
			return save(p, filepath.Join(to, name(prefix, family, p)))
		}
		return nil
	})
	must(t, err)
	t.Logf("%d files, %d entries", files, entries)
	if files < atLeast {
		t.Errorf("only %d files", files)
	}
}

func name(prefix, family, p string) string {
	n := prefix + "-" + family
	if strings.Contains(p, "_SeqId_") {
		n += "-bulk"
	}
	if strings.Contains(p, "/mobdir/") {
		n += "-values"
	}
	return n + ".hfile"
}

func save(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

func verify(p string) (hfile.Summary, error) {
	f, err := os.Open(p)
	if err != nil {
		return hfile.Summary{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return hfile.Summary{}, err
	}
	v := hfile.NewVerifier(st.Size())
	if _, err := io.Copy(v, f); err != nil {
		return hfile.Summary{}, err
	}
	s, err := v.Close()
	if err != nil {
		return s, err
	}
	trailer, err := hfile.ReadTrailer(f, st.Size())
	if err != nil {
		return s, err
	}
	if trailer.Entries != s.Entries {
		return s, fmt.Errorf("%d and %d entries", trailer.Entries, s.Entries)
	}
	if trailer.Encrypted() {
		return s, nil
	}
	info, err := hfile.ReadFileInfo(f, trailer)
	if err != nil {
		return s, err
	}
	if id, ok := info.MaxSeqID(); ok && id != s.MaxSeqID || !ok && s.MaxSeqID != -1 {
		return s, fmt.Errorf("sequence ids %d and %d", id, s.MaxSeqID)
	}
	if s.Entries > 0 && len(info[hfile.KeyLastKey]) == 0 {
		return s, fmt.Errorf("no last key in %v", info)
	}
	return s, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
