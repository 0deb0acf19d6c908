package bench

import (
	"context"

	"hbackup/storage"
)

// FS is what Hadoop's committers ask of a file system. Each call makes the
// requests that Hadoop's own client of that kind of store makes for it. Paths are
// relative to the folder of the benchmark, with no slash at either end. A missing
// path is KindNotFound. All methods may be called from many goroutines.
type FS interface {
	// Create writes a new file, as a task does: create(path, false) of Hadoop.
	Create(ctx context.Context, path string, data []byte) error
	// Save writes a small file, as committers do: create(path, true).
	Save(ctx context.Context, path string, data []byte) error
	// Put writes a small file without looking what is there, as S3A's committers do.
	Put(ctx context.Context, path string, data []byte) error
	// Load reads a small file whose status is known from a listing, Read one of which
	// only the path is known.
	Load(ctx context.Context, path string) ([]byte, error)
	Read(ctx context.Context, path string) ([]byte, error)
	// Status describes a path.
	Status(ctx context.Context, path string) (Status, error)
	// List gives what is directly in a directory, in order of names.
	List(ctx context.Context, dir string) ([]Status, error)
	// Walk gives all files below a directory, in order of paths.
	Walk(ctx context.Context, dir string) ([]Status, error)
	// Mkdirs makes a directory and its parents.
	Mkdirs(ctx context.Context, dir string) error
	// Rename gives a file or a directory another path, which must be free.
	Rename(ctx context.Context, from, to string) error
	// Merge is what FileOutputCommitter does with a file: it asks whether the path
	// is free and renames.
	Merge(ctx context.Context, from, to string) error
	// Delete removes a file or a tree; a missing path is no error.
	Delete(ctx context.Context, path string) error
}

// Status describes a file or a directory.
type Status struct {
	Path string
	Dir  bool
	Size int64
}

// Uploads are uploads in parts that are held open, which some stores have.
type Uploads interface {
	Begin(ctx context.Context, path string) (id string, err error)
	// Part sends the one part of an upload and gives its tag.
	Part(ctx context.Context, path, id string, data []byte) (tag string, err error)
	// Complete makes the file visible.
	Complete(ctx context.Context, path, id, tag string) error
	Abort(ctx context.Context, path, id string) error
	// Open lists the uploads below a directory that are neither complete nor aborted.
	Open(ctx context.Context, dir string) ([]Upload, error)
}

// Upload is one that is held open.
type Upload struct{ Path, ID string }

// Target is a folder of its own in a location, and the ways to it: all through
// the same connections and the same Meter.
type Target interface {
	// Store is the product's own store in the folder.
	Store() storage.Store
	// FS is the folder as Hadoop would see it. On some stores the manifest committer
	// has a rename of its own.
	FS(Protocol) FS
	// Uploads is nil when the store has none.
	Uploads() Uploads
	Meter() *Meter
	// Names lists everything that is in a directory at any depth, also what is no
	// object to the product: markers of folders and directories end in '/'.
	Names(ctx context.Context, dir string) ([]string, error)
	// Clear removes the folder with all that is in it, open uploads too, and nothing
	// else.
	Clear(ctx context.Context) error
	Close() error
}
