// Package rootfs is the file system that an HBase cluster lives on: HDFS, or a
// local directory for stand-alone servers. It is not a place for backups; that
// is package storage. Paths are absolute within the file system ("/hbase/data/…").
package rootfs

import (
	"context"
	"io"

	"hbackup/internal/files"
)

// FS is a cluster's file system. Errors carry an hbackup.Kind and the fully
// qualified path; a missing file is KindNotFound and nothing else is. All
// methods may be called from many goroutines at once. The context given to Open or
// Create rules the reader or writer until its end; each has one user at a time.
type FS interface {
	// URI gives the file system without a path: "hdfs://host:8020" or "file://".
	URI() string

	// Stat describes a file or directory.
	Stat(ctx context.Context, path string) (Info, error)

	// Open opens a file for one pass from the given offset. The reader fails
	// with KindIncomplete when it ends before the length in Info. Files whose
	// bytes cannot be read faithfully (encrypted, erasure-coded, still open for
	// writing) are refused with KindUnsupported.
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, Info, error)

	// ReadDir lists a directory, ordered by name.
	ReadDir(ctx context.Context, path string) ([]Info, error)

	// Create makes a new file; an existing one is KindExists. Nothing counts as
	// written before Close has returned nil. Parents must exist.
	Create(ctx context.Context, path string) (Writer, error)

	// Publish gives a whole file another name, in one step, if that name is free:
	// of all who publish under it one wins, and for the others it is KindExists.
	// The parent must exist; a file that is missing is KindNotFound. A lost answer
	// is settled by the file's identity.
	Publish(ctx context.Context, from, to string) error

	// MkdirAll makes a directory and its parents.
	MkdirAll(ctx context.Context, path string) error

	// Remove removes a file or an empty directory; a missing one is no error.
	Remove(ctx context.Context, path string) error

	// RemoveAll removes a tree; a missing one is no error.
	RemoveAll(ctx context.Context, path string) error

	// Close releases connections.
	Close() error
}

// Writer is a file being written. Exactly one of Close and Abort ends it.
type Writer interface {
	io.Writer
	// Close makes the content durable and the file whole.
	Close() error
	// Abort gives up and removes what was written.
	Abort() error
}

// Info describes a file or directory.
type Info = files.Info
