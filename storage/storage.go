// Package storage is the contract of a place that holds backups. One package
// below it implements it for each kind of store; storetest holds the suite that
// every one of them passes.
//
// What a store must guarantee, and all that hbackup asks of it:
//
//   - Put is atomic: an object is absent or whole. A put that failed, was
//     cancelled, or whose process was killed leaves nothing that Stat, Get or
//     List can see under the key, or leaves what was there before.
//   - Put with IfAbsent has exactly one winner, however many try; the others
//     get hbackup.KindExists and change nothing.
//   - After Put returned nil the object is durable, and every later Get, Stat
//     and List anywhere sees it.
//   - List is complete and in ascending byte order of the keys.
//   - Delete of an absent key succeeds.
//   - Errors carry an hbackup.Kind: a missing object is KindNotFound and nothing
//     else is. No error text holds a secret.
//
// All methods may be called from many goroutines at once.
package storage

import (
	"context"
	"io"
	"iter"
	"time"
)

// Location is a fully qualified place: s3://bucket/prefix, file:///srv/backup,
// hdfs://nn:8020/path, gs://bucket/prefix, mem://name. It has no trailing slash.
type Location string

// Store is one location. See the package comment for its guarantees.
type Store interface {
	// Location gives the fully qualified name that errors and listings show.
	Location() Location

	// Capabilities says what the store can do beyond the contract.
	Capabilities() Capabilities

	// Put writes one object from body. The body must give exactly opts.Size
	// bytes: fewer or more fail with KindCorrupt and leave nothing visible. The
	// returned Object carries the digest of the bytes that were read from body.
	Put(ctx context.Context, key Key, body io.Reader, opts PutOptions) (Object, error)

	// Get opens the bytes of the range. The reader fails with KindIncomplete
	// when the store delivers fewer bytes than it announced, never with a quiet
	// EOF. The Object's Size is that of the whole object. An offset beyond the
	// end is KindUsage. The caller closes the reader.
	Get(ctx context.Context, key Key, r Range) (io.ReadCloser, Object, error)

	// Stat describes one object without reading it.
	Stat(ctx context.Context, key Key) (Object, error)

	// List yields the objects whose key starts with prefix, in ascending byte
	// order, page by page as the caller advances. The prefix is compared as a
	// string: end it with '/' to mean a folder. It yields one error at most, as
	// its last element; a listing that ended in an error is incomplete. Keys
	// ending in '/' (folder markers of other tools) are left out.
	List(ctx context.Context, prefix string, opts ListOptions) iter.Seq2[Object, error]

	// Delete removes one object. A missing one is no error.
	Delete(ctx context.Context, key Key) error

	// DeleteBatch removes many objects in as few requests as the store allows.
	// It reports every key that is not known to be gone; the error is for a call
	// that failed as a whole, and then nothing is known of any key.
	DeleteBatch(ctx context.Context, keys []Key) ([]DeleteFailure, error)

	// ServerTime gives the store's own clock, good to a second or so.
	ServerTime(ctx context.Context) (time.Time, error)

	// Close releases connections. Objects are not affected.
	Close() error
}

// PutOptions say what is put and under which condition.
type PutOptions struct {
	Size     int64   // bytes that the body holds; exact
	IfAbsent bool    // fail with KindExists when the key is taken
	Digest   *Digest // when set, a body with another digest fails with KindCorrupt
}

// Object describes a stored object.
type Object struct {
	Key  Key
	Size int64
	// Digest is that of the content when HasDigest is set. Put always sets it.
	// Stat sets it when the store keeps it, and List never need.
	Digest    Digest
	HasDigest bool
	// Modified is the store's time of the last write. For people only: copying
	// a bucket changes it, so no decision is ever taken from it.
	Modified time.Time
}

// Range is a part of an object. The zero value is the whole.
type Range struct {
	Offset int64
	Length int64 // 0 means up to the end
}

// ListOptions narrow a listing.
type ListOptions struct {
	After Key // start behind this key
	Limit int // stop after so many objects; 0 means no limit
}

// DeleteFailure is one key of a batch that is not known to be gone.
type DeleteFailure struct {
	Key Key
	Err error
}

// Capabilities are what a store says of itself. The zero value is the bare contract.
type Capabilities struct {
	StoredDigest bool // Stat returns the digest that the store itself checked
	MaxKeyBytes  int  // longest key; 0 means unknown
	BatchDelete  int  // keys per delete request; 1 or 0 means one by one
}
