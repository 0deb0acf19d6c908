// Package hdfsfs gives the benchmark of committers a directory of an HDFS: every
// call is the name node's own, made by the product's client.
//
// The client's library asks for the status of a path before it removes it, which
// Hadoop's own client does not.
package hdfsfs

import (
	"context"
	"net"
	"path"
	"strings"
	"time"

	"hbackup/bench"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// Target is a folder in a directory.
type Target struct {
	store *hdfs.Store
	fs    *client.FS
	meter *bench.Meter
	root  string
}

var _ bench.Target = (*Target)(nil)

// Open gives the folder in a directory. Nothing is sent.
func Open(place storage.Place, c hdfs.Config, folder string, latency time.Duration) (*Target, error) {
	t := &Target{meter: bench.NewMeter(latency), root: path.Join(place.Path, folder)}
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return t.meter.Conn(conn), nil
	}
	c.Observe = func(request string) {
		_ = t.meter.Request(context.Background(), request) // whose only error is that of the context
	}
	if len(c.NameNodes) == 0 {
		c.NameNodes = []string{place.Host}
	}
	var err error
	if t.store, err = hdfs.Open(storage.Place{Scheme: place.Scheme, Host: place.Host, Path: t.root}, c); err != nil {
		return nil, err
	}
	t.fs, err = client.New(client.Config{
		Authority: place.Host, NameNodes: c.NameNodes, User: c.User, RetryFor: c.RetryFor, StartFor: c.StartFor, Log: c.Log, Replication: c.Replication, BlockSize: c.BlockSize,
		FileMode: 0o600, DirMode: 0o700, Dial: c.Dial, Observe: c.Observe, IdleClients: bench.MaxParallel,
	})
	if err != nil {
		t.store.Close()
		return nil, err
	}
	return t, nil
}

func (t *Target) Store() storage.Store       { return t.store }
func (t *Target) FS(bench.Protocol) bench.FS { return (*fileSystem)(t) }
func (t *Target) Uploads() bench.Uploads     { return nil }
func (t *Target) Meter() *bench.Meter        { return t.meter }

// Close ends the connections.
func (t *Target) Close() error {
	t.fs.Close()
	return t.store.Close()
}

// Names lists everything in a directory; directories count only when they are empty.
func (t *Target) Names(ctx context.Context, dir string) ([]string, error) {
	entries, err := t.fs.ReadDir(ctx, path.Join(t.root, dir))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return []string{dir + "/"}, nil
	}
	var names []string
	for _, e := range entries {
		p := strings.TrimPrefix(e.Path, t.root+"/")
		if !e.Dir {
			names = append(names, p)
			continue
		}
		below, err := t.Names(ctx, p)
		if err != nil {
			return nil, err
		}
		names = append(names, below...)
	}
	return names, nil
}

// Clear removes the folder.
func (t *Target) Clear(ctx context.Context) error { return t.fs.RemoveAll(ctx, t.root) }
