package check

import (
	"context"
	"fmt"
	"path"
	"strings"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
)

// hbase looks at the master and at what is left of runs that died.
func (l *list) hbase(ctx context.Context, c Cluster) {
	if c.MasterErr != nil {
		l.fail("hbase", c.MasterErr)
		return
	}
	version, err := c.Master.Version(ctx)
	if err != nil {
		l.fail("hbase", err)
		return
	}
	l.ok("hbase", fmt.Sprintf("HBase %s, cluster id %s", version, c.Master.ClusterID()))
	all, err := c.Master.Snapshots(ctx)
	if err != nil {
		l.fail("snapshots", err)
		return
	}
	var left []string
	for _, s := range all {
		if strings.HasPrefix(s.Name, "hbackup.") || strings.HasPrefix(s.Name, "hbackup-") {
			left = append(left, s.Name)
		}
	}
	if len(left) == 0 {
		l.ok("snapshots", fmt.Sprintf("%d on the cluster, none of hbackup", len(all)))
		return
	}
	l.warn("snapshots", fmt.Sprintf("%d of hbackup are on the cluster: %s", len(left), some(left)),
		"they belong to a run at work, or to one that died: the next backup, or the same restore run again, removes its own; one that nobody will run again goes with delete_snapshot in HBase's shell")
}

// root looks at HBase's root directory, and for snapshot directories that stop
// the cluster's cleaners.
func (l *list) root(ctx context.Context, c Cluster) {
	if c.FSErr != nil {
		l.fail("root directory", c.FSErr)
		return
	}
	uri := c.FS.URI() + c.Root
	info, err := c.FS.Stat(ctx, path.Join(c.Root, "hbase.id"))
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		l.fail("root directory", hbackup.Errorf("look into HBase's root directory", uri, hbackup.KindUsage, "there is no hbase.id in it").
			WithHint("set clusters.%s.root to the value of hbase.rootdir", c.Name))
		return
	}
	if err != nil {
		l.fail("root directory", err)
		return
	}
	l.ok("root directory", fmt.Sprintf("%s, made %s", uri, hbackup.FormatTime(info.Modified)))

	half, err := halfSnapshots(ctx, c)
	switch {
	case err != nil:
		l.fail("cleaners", err)
	case len(half) > 0:
		l.warn("cleaners", "these snapshot directories are incomplete and stop HBase from cleaning its archive: "+some(half),
			"if no snapshot or restore is running, remove them with: hdfs dfs -rm -r <directory>")
	default:
		l.ok("cleaners", "no snapshot directory stops them")
	}
}

// halfSnapshots finds snapshot directories without .snapshotinfo.
func halfSnapshots(ctx context.Context, c Cluster) ([]string, error) {
	dir := path.Join(c.Root, snapshot.SnapshotsDir)
	entries, err := c.FS.ReadDir(ctx, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var half []string
	for _, e := range entries {
		if !e.Dir || strings.HasPrefix(e.Name, ".") {
			continue
		}
		_, err := c.FS.Stat(ctx, path.Join(dir, e.Name, catalog.SnapshotInfoFile))
		if hbackup.IsKind(err, hbackup.KindNotFound) {
			half = append(half, c.FS.URI()+e.Path)
		} else if err != nil {
			return nil, err
		}
	}
	return half, nil
}

// some names the first few.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
