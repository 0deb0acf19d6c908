package rootfs

import (
	"context"

	"hbackup/internal/hdfs"
)

// Config says how to reach an HDFS. Zero values mean the defaults given.
type Config = hdfs.Config

// Why Open refuses a file whose bytes it could not read faithfully. They are the
// causes of an error of KindUnsupported.
var (
	ErrOpenForWriting = hdfs.ErrOpenForWriting
	ErrEncrypted      = hdfs.ErrEncrypted
	ErrErasureCoded   = hdfs.ErrErasureCoded
)

// HDFS connects to an HDFS. It asks the name node for its defaults once, so that
// a wrong address or credentials are found here.
func HDFS(ctx context.Context, cfg Config) (FS, error) {
	fs, err := hdfs.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return onHDFS{fs}, nil
}

type onHDFS struct{ *hdfs.FS }

// Create gives a Writer; the package below has one of its own type.
func (f onHDFS) Create(ctx context.Context, path string) (Writer, error) {
	w, err := f.FS.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Publish renames without replacing; see hdfs.FS.
func (f onHDFS) Publish(ctx context.Context, from, to string) error {
	info, err := f.FS.Stat(ctx, from)
	if err != nil {
		return err
	}
	return f.FS.Publish(ctx, info, to, false)
}
