package hdfs

import (
	"context"

	"hbackup/internal/hdfs"
	"hbackup/internal/webhdfs"
	"hbackup/storage"
)

// connect gives the file system that a location is in, by the protocol that the
// configuration says. It asks nobody yet.
func connect(place storage.Place, cfg Config) (fileSystem, error) {
	const fileMode, dirMode = 0o600, 0o700
	if len(cfg.WebHDFS) > 0 {
		fs, err := webhdfs.New(webhdfs.Config{
			Authority: place.Host, Addresses: cfg.WebHDFS, User: cfg.User, Token: cfg.DelegationToken, CAFile: cfg.CAFile,
			FileMode: fileMode, DirMode: dirMode, Replication: cfg.Replication, BlockSize: cfg.BlockSize,
			RetryFor: cfg.RetryFor, StartFor: cfg.StartFor, Log: cfg.Log,
		})
		if err != nil {
			return nil, err
		}
		return overHTTP{fs}, nil
	}
	nodes := cfg.NameNodes
	if len(nodes) == 0 {
		nodes = []string{place.Host}
	}
	fs, err := hdfs.New(hdfs.Config{
		Authority: place.Host, NameNodes: nodes, User: cfg.User, Dial: cfg.Dial, Observe: cfg.Observe,
		FileMode: fileMode, DirMode: dirMode, Replication: cfg.Replication, BlockSize: cfg.BlockSize,
		RetryFor: cfg.RetryFor, StartFor: cfg.StartFor, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return native{fs}, nil
}

// native and overHTTP make the clients' writers those of this package.

type native struct{ *hdfs.FS }

func (f native) Create(ctx context.Context, path string) (writer, error) {
	w, err := f.FS.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	return w, nil
}

type overHTTP struct{ *webhdfs.FS }

func (f overHTTP) Create(ctx context.Context, path string) (writer, error) {
	w, err := f.FS.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Sealed is false: what TLS seals is open here.
func (f overHTTP) Sealed() bool { return false }
