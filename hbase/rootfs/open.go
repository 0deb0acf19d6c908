package rootfs

import (
	"context"
	"net/url"
	"path"

	"hbackup"
)

// Open opens the file system that a URI names and gives the path in it:
// "hdfs://host:8020/hbase", "hdfs://logical-name/hbase" with cfg.NameNodes,
// "file:///var/hbase". cfg counts for HDFS only; without cfg.NameNodes the
// URI's own host is the name node.
func Open(ctx context.Context, uri string, cfg Config) (FS, string, error) {
	const op = "open file system"
	u, err := url.Parse(uri)
	if err != nil {
		return nil, "", hbackup.E(op, uri, hbackup.KindUsage, err)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, "", hbackup.Errorf(op, uri, hbackup.KindUsage, "only scheme, host and path are allowed")
	}
	p := path.Clean("/" + u.Path)
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, "", hbackup.Errorf(op, uri, hbackup.KindUsage, "a file:// URI with the host %q", u.Host).
				WithHint("write three slashes: file:///path")
		}
		return Local(), p, nil
	case "hdfs":
		if u.Host == "" && cfg.Authority == "" && len(cfg.NameNodes) == 0 {
			return nil, "", hbackup.Errorf(op, uri, hbackup.KindUsage, "the URI names no name node").
				WithHint("write hdfs://host:8020/path, or configure the name nodes' addresses")
		}
		if u.Host != "" {
			cfg.Authority = u.Host
		}
		if len(cfg.NameNodes) == 0 {
			cfg.NameNodes = []string{u.Host}
		}
		fs, err := HDFS(ctx, cfg)
		return fs, p, err
	case "":
		return nil, "", hbackup.Errorf(op, uri, hbackup.KindUsage, "the path has no scheme").
			WithHint("write hdfs://host:8020%s or file://%s", p, p)
	}
	return nil, "", hbackup.Errorf(op, uri, hbackup.KindUnsupported, "HBase root on %q", u.Scheme).
		WithHint("hdfs:// and file:// are supported")
}
