package servers

import (
	"context"
	"errors"
	"path/filepath"
)

// ClusterOptions choose how a cluster is started. The zero value is HBase 2.6
// with one region server on an HDFS of its own.
type ClusterOptions struct {
	Version       Version
	Dir           string   // a temporary directory, removed at Stop, when empty
	WALDir        string   // "/path" for write-ahead logs; empty: below the root directory
	RegionServers int      // 0 means 1
	Separate      bool     // every region server in a process of its own, so that it can be killed
	LocalRoot     bool     // no HDFS: the root directory is a local one
	NameNodePort  int      // 0: any free one
	ZooKeeperPort int      // 0: any free one
	HBase         Settings // hbase-site.xml
	Hadoop        Settings // core-site.xml and hdfs-site.xml
}

// Cluster is HBase and the HDFS below it, each in a JVM of its own so that each can be killed apart.
type Cluster struct {
	*HBase
	HDFS *HDFS // nil with a local root
	dir  *workDir
}

// StartCluster starts both and returns when the master is initialised.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	dir, err := newWorkDir(o.Dir, "cluster")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if !o.LocalRoot {
		c.HDFS, err = StartHDFS(ctx, HDFSOptions{
			Version: o.Version, Dir: filepath.Join(dir.dir, "hdfs"), Port: o.NameNodePort, Extra: o.Hadoop})
		if err != nil {
			return nil, dir.afterFailure(ctx, err)
		}
	}
	c.HBase, err = StartHBase(ctx, HBaseOptions{
		Version: o.Version, Dir: filepath.Join(dir.dir, "hbase"), HDFS: c.HDFS, WALDir: o.WALDir, RegionServers: o.RegionServers, Separate: o.Separate,
		ZooKeeperPort: o.ZooKeeperPort, Extra: o.HBase})
	if err != nil {
		if c.HDFS != nil {
			c.HDFS.Kill()
		}
		return nil, dir.afterFailure(ctx, err)
	}
	return c, nil
}

// Stop ends everything and removes the directory if it was a temporary one.
func (c *Cluster) Stop() error {
	err := c.HBase.Stop()
	if c.HDFS != nil {
		err = errors.Join(err, c.HDFS.Stop())
	}
	return errors.Join(err, c.dir.remove())
}
