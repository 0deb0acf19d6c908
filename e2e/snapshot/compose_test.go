package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/snapshot"
)

// fixturesEnv names a directory to which the manifests are saved: the test data
// of package hbase/snapshot.
const fixturesEnv = "HBACKUP_SNAPSHOT_FIXTURES"

// Each table is snapshot, read, composed and cloned. The clone must show what
// the table showed: at once; after the snapshot is gone and the cleaners have
// run; and after its own major compaction and another cleaning.
func TestComposedSnapshotsAreCloned(t *testing.T) {
	for _, v := range []servers.Version{servers.HBase26, servers.HBase24, servers.HBase25, servers.HBase30} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel() // much of the time is waiting for HBase
			c := servers.ForTest(t).Cluster(servers.ClusterOptions{Version: v, LocalRoot: true, HBase: servers.EagerCleaners()})
			fsys, root, err := rootfs.Open(t.Context(), c.Root(), rootfs.Config{})
			must(t, err)
			defer fsys.Close()
			must(t, c.SetCompaction(t.Context(), false))
			s := &site{c.HBase, fsys, root}
			before := map[string]servers.Dump{}
			for _, x := range shapes {
				if !t.Run("make "+x.table, func(t *testing.T) {
					x.make(t, c.HBase, x.table)
					d, err := c.Dump(t.Context(), x.table, false)
					must(t, err)
					before[x.table] = d
					must(t, c.Snapshot(t.Context(), x.table, snapshotOf(x.table)))
				}) {
					return
				}
			}
			for _, x := range shapes {
				if dir := os.Getenv(fixturesEnv); dir != "" {
					s.save(t, filepath.Join(dir, string(v), snapshotOf(x.table)), x.table)
				}
			}
			for _, x := range shapes {
				t.Run(x.table, func(t *testing.T) { s.roundTrip(t, x.table, before[x.table]) })
			}
		})
	}
}

func snapshotOf(table string) string { return "of-" + strings.ReplaceAll(table, ":", "-") }

// site is a cluster and its file system.
type site struct {
	*servers.HBase
	fs   rootfs.FS
	root string
}

func (s *site) roundTrip(t *testing.T, table string, want servers.Dump) {
	ctx := t.Context()
	m, err := snapshot.Read(ctx, s.fs, s.root, snapshotOf(table))
	must(t, err)
	faults, err := snapshot.Missing(ctx, s.fs, s.root, m)
	must(t, err)
	if len(faults) > 0 {
		t.Fatalf("HBase took the snapshot, but files are missing: %+v", faults)
	}
	s.checkRegions(t, m, table)

	job := strings.ReplaceAll(table, ":", "-")
	o := snapshot.ComposeOptions{Name: "composed-" + job, Job: job}
	c, err := snapshot.Compose(m, o)
	switch {
	case table == "fx:mobclone" && hbackup.IsKind(err, hbackup.KindUnsupported):
		t.Logf("refused as it must be: %v (%s)", err, hbackup.HintOf(err))
		o.ForeignMOB = true // the files are all there on this cluster
		if c, err = snapshot.Compose(m, o); hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Logf("and refused for its links: %v", err) // HBase 2.5
			return
		}
	}
	must(t, err)
	for _, note := range c.Notes {
		t.Log(note)
	}
	s.install(t, c)
	clone := "fx:copy_of_" + strings.TrimPrefix(table, "fx:")
	must(t, s.CloneSnapshot(ctx, o.Name, clone))
	s.compare(t, clone, want, "cloned")

	must(t, s.DeleteSnapshot(ctx, o.Name))
	must(t, s.RefreshSnapshotCache(ctx))
	_, err = s.RunCatalogJanitor(ctx)
	must(t, err)
	s.clean(t)
	must(t, s.Reopen(ctx, clone))
	s.compare(t, clone, want, "snapshot deleted")

	must(t, s.SetCompaction(ctx, true))
	must(t, s.MajorCompact(ctx, clone))
	must(t, s.ArchiveCompacted(ctx))
	must(t, s.SetCompaction(ctx, false))
	s.clean(t)
	must(t, s.Reopen(ctx, clone))
	s.compare(t, clone, want, "compacted")
	s.clean(t)
	if left := s.staged(t, job); len(left) > 0 {
		t.Errorf("%d staged files are still there after the clone has compacted: %v", len(left), left)
	}
	must(t, s.Drop(ctx, clone))
}

func (s *site) compare(t *testing.T, table string, want servers.Dump, when string) {
	t.Helper()
	got, err := s.Dump(t.Context(), table, false)
	must(t, err)
	if err := servers.DiffDumps(want, got); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if got.Cells == 0 {
		t.Fatalf("%s: the table is empty", when)
	}
}

func (s *site) clean(t *testing.T) {
	t.Helper()
	_, err := s.RunCleaner(t.Context())
	must(t, err)
}

// checkRegions compares the computed encoded names with those that HBase gives.
func (s *site) checkRegions(t *testing.T, m *snapshot.Manifest, table string) {
	t.Helper()
	ours := map[string]bool{}
	for i := range m.Regions {
		ours[string(m.Regions[i].Encoded)] = true
	}
	for _, r := range regions(t, s.HBase, table) {
		if !ours[r.Encoded] {
			t.Errorf("region %s is not among the names computed from the manifest", r.Encoded)
		}
	}
}

// install puts a composed snapshot and its files into the living root: the
// snapshot first, so that the cleaners leave the files alone.
func (s *site) install(t *testing.T, c *snapshot.Composition) {
	t.Helper()
	manifest, err := snapshot.EncodeManifest(c.Manifest)
	must(t, err)
	info, err := c.Manifest.Description.Encode()
	must(t, err)
	dir := snapshot.SnapshotDir(s.root, c.Manifest.Description.Name)
	must(t, s.write(t.Context(), path.Join(dir, snapshot.ManifestFile), strings.NewReader(string(manifest))))
	must(t, s.write(t.Context(), path.Join(dir, snapshot.InfoFile), strings.NewReader(string(info))))
	for _, x := range c.Staged {
		r, opened, err := snapshot.Open(t.Context(), s.fs, s.root, x.From, 0)
		must(t, err)
		if x.Size >= 0 && opened.Size != x.Size {
			t.Fatalf("%s has %d bytes, the snapshot says %d", x.From, opened.Size, x.Size)
		}
		err = s.write(t.Context(), path.Join(s.root, x.Path), r)
		if x.From.MOB && hbackup.IsKind(err, hbackup.KindExists) {
			err = nil // the original is archived at the very place
		}
		must(t, errors.Join(err, r.Close()))
	}
}

func (s *site) write(ctx context.Context, p string, from io.Reader) error {
	if err := s.fs.MkdirAll(ctx, path.Dir(p)); err != nil {
		return err
	}
	w, err := s.fs.Create(ctx, p)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, from); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// staged lists the files in the job's staging path.
func (s *site) staged(t *testing.T, job string) (left []string) {
	t.Helper()
	err := filepath.WalkDir(path.Join(s.root, "archive/data", snapshot.StageNamespace, job), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") && !strings.Contains(p, "/.links-") {
			left = append(left, p)
		}
		return err
	})
	must(t, err)
	return left
}

// save keeps a snapshot's files, and a list of the store files of the table and
// of those it may link to, as they lie in the root directory.
func (s *site) save(t *testing.T, dir, table string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o777))
	for _, name := range []string{snapshot.InfoFile, snapshot.ManifestFile} {
		data, err := os.ReadFile(path.Join(snapshot.SnapshotDir(s.root, snapshotOf(table)), name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, strings.TrimPrefix(name, ".")), data, 0o666))
	}
	var lines []string
	for _, top := range []string{"data", "archive/data", "mobdir/data"} {
		must(t, filepath.WalkDir(path.Join(s.root, top, "fx"), func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.Contains(p, "/recovered.edits/") || strings.Contains(p, "/.") {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("%d %s\n", info.Size(), strings.TrimPrefix(p, s.root)))
			return nil
		}))
	}
	slices.Sort(lines)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "files.txt"), []byte(strings.Join(lines, "")), 0o666))
}
