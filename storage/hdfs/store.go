// Package hdfs is a store in a directory of an HDFS, reached by its native
// protocol or, where that cannot go, over HTTP. Both ways lead to one place, whose
// name is the same; what is below is true of both.
//
// An object is a file. It is written in the directory .hbackup-tmp of the
// location, closed, compared in size with what was sent, and then given its key
// by one call to the name node, which refuses when the key is taken. So a file
// that has a key is whole, of all who create one key exactly one wins, and the
// file that a killed process left open (whose lease the name node ends some time
// later, which turns it into a short file that looks whole) never had a key.
// Writing at the key itself would have none of these: until its lease ends
// nobody can tell a dead writer's file from that of a slow one, and afterwards
// nobody can tell it from a whole one.
//
// The call is a rename, the one that HDFS does in its memory and its log in one
// step, whatever the size. No rename replaces anything under IfAbsent; only a
// plain Put over an object that is there does, in the same one step. Every file
// has a number of its own on the name node, by which the outcome of a call is
// told when its answer is lost, by a fail-over or otherwise.
//
// Durable means here what it means to HDFS: the data nodes of the pipeline have
// acknowledged the bytes, and the name node has logged the name. Whether that
// has reached their disks is the cluster's choice (dfs.datanode.synconclose).
//
// Files are 0600 and directories 0700. HDFS cannot hold a colon or the name
// .snapshot. The digest of an object is not kept on HDFS, which has checksums of
// its own: the native protocol checks every read against them, and with WebHDFS
// the data node does. Encryption zones and erasure coding are refused before
// anything is written by the native protocol, and nothing special to WebHDFS.
package hdfs

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// Config says how a location is reached. Zero values mean the defaults given.
type Config struct {
	NameNodes   []string // addresses host:port of all name nodes (default: the location's host)
	User        string   // default: $HADOOP_USER_NAME, then the user of this process
	Replication int      // of new files (default: as the name node says)
	BlockSize   int64    // of new files, in bytes (default: as the name node says)
	// RetryFor, StartFor and Log are about name nodes that cannot answer; see
	// hadoop.Patience.
	RetryFor, StartFor time.Duration
	Log                *slog.Logger
	// Dial replaces the plain TCP dialer of the native protocol, for name nodes and
	// data nodes.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Observe is told of every request before it leaves, and the request waits for it.
	Observe func(request string)

	// WebHDFS has the addresses of WebHDFS, "http://nn1:9870", of all name nodes, or
	// of HttpFS. With any, HDFS is reached there instead of by the native protocol.
	WebHDFS []string
	// DelegationToken and CAFile are those of webhdfs.Config.
	DelegationToken func() (string, error)
	CAFile          string
}

// fileSystem is what is needed of an HDFS; see package internal/hdfs.
type fileSystem interface {
	Stat(ctx context.Context, path string) (files.Info, error)
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, files.Info, error)
	ReadDirPage(ctx context.Context, path, after string) ([]files.Info, error)
	MkdirAll(ctx context.Context, path string) error
	Remove(ctx context.Context, path string) error
	RemoveEmptyDir(ctx context.Context, path string) error
	Create(ctx context.Context, path string) (writer, error)
	Publish(ctx context.Context, file files.Info, to string, replace bool) error
	Sealed() bool
	Close() error
}

type writer interface {
	io.Writer
	Close() error
	Abort() error
	Info() files.Info
}

// Names that are no keys.
const (
	tempDir   = ".hbackup-tmp" // at the top of the location
	snapshots = ".snapshot"    // of every directory
)

// Store is a directory of an HDFS.
type Store struct {
	fs       fileSystem
	location storage.Location
	path     string

	replication int // of new files; 0: as the name node says

	sweep sync.Once // of what dead processes left in tempDir
	dirs  known
}

var _ storage.Store = (*Store)(nil)

// Open gives the store in a directory. It asks nobody yet. The directory is made
// by the first Put.
func Open(place storage.Place, cfg Config) (*Store, error) {
	bad := func(format string, args ...any) error {
		return hbackup.Errorf("open location", string(place.Location()), hbackup.KindUsage, format, args...)
	}
	switch {
	case place.Scheme != storage.SchemeHDFS || place.Host == "" || len(place.Path) < 2 || place.Path[0] != '/':
		return nil, bad("it is not a directory of an HDFS")
	case strings.Contains(place.Path, ":"):
		return nil, bad("HDFS allows no colon in a path")
	case strings.HasPrefix(place.Path+"/", "/.reserved/") || strings.Contains(place.Path+"/", "/"+snapshots+"/"):
		return nil, bad("HDFS keeps that name for itself")
	}
	fs, err := connect(place, cfg)
	if err != nil {
		return nil, err
	}
	s := open(fs, place)
	s.replication = cfg.Replication
	return s, nil
}

func open(fs fileSystem, place storage.Place) *Store {
	return &Store{fs: fs, location: place.Location(), path: place.Path}
}

// Location gives hdfs://authority/directory.
func (s *Store) Location() storage.Location { return s.location }

// Capabilities are the bare contract.
func (s *Store) Capabilities() storage.Capabilities {
	return storage.Capabilities{MaxKeyBytes: storage.MaxKeyBytes}
}

// ServerTime gives the name node's clock: the time it gives to a new file. Who
// may not write in the location can take no lease there either; this machine's
// clock is good enough then.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, s.err("ask the time of", "", err)
	}
	w, path, err := s.createTemp(ctx)
	if err == nil {
		err = w.Close()
	}
	switch {
	case hbackup.IsKind(err, hbackup.KindDenied, hbackup.KindReadOnly, hbackup.KindNoSpace):
		return time.Now(), nil
	case err != nil:
		return time.Time{}, s.err("ask the time of", "", err)
	}
	s.discard(ctx, path)
	return w.Info().Modified, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.fs.Close() }

// at gives the path of a key, or of a directory of keys.
func (s *Store) at(key string) string {
	if key == "" {
		return s.path
	}
	return s.path + "/" + key
}

// folder gives the key's directory, "" for the location itself.
func folder(key storage.Key) string {
	i := strings.LastIndexByte(string(key), '/')
	return string(key[:max(i, 0)])
}

// check is storage.Check and refuses the names that are no keys here.
func (s *Store) check(ctx context.Context, op string, key storage.Key) error {
	if err := storage.Check(ctx, op, s.location, key); err != nil {
		return err
	}
	if name := reserved(string(key)); name != "" {
		return hbackup.Errorf(op, s.location.At(key), hbackup.KindUsage, "%q is a reserved name", name)
	}
	return nil
}

// reserved gives the segment that keeps a path from being a key, or "".
func reserved(path string) string {
	first := true
	for segment := range strings.SplitSeq(path, "/") {
		if segment == snapshots || first && segment == tempDir {
			return segment
		}
		first = false
	}
	return ""
}

// object describes a file.
func object(key storage.Key, info files.Info) storage.Object {
	return storage.Object{Key: key, Size: info.Size, Modified: info.Modified}
}

func tempName() string { return rand.Text() }
