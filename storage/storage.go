// Package storage is the contract of a place that holds backups. One package
// below it implements it for each kind of store; storetest holds the suite that
// every one of them passes.
//
// What a store must guarantee, and all that hbackup asks of it:
//
//   - Put is atomic: an object is absent or whole. A put that failed, was
//     cancelled, or whose process was killed leaves nothing that Stat, Get or
//     List can see under the key, or leaves what was there before. The one
//     exception is a put whose error says that the outcome is unknown
//     (KindTimeout, KindUnavailable, KindInterrupted after the last byte was
//     sent): the object is whole or absent then, too, but which of both only
//     Stat can tell.
//   - Put with IfAbsent has exactly one winner, however many try; the others
//     get hbackup.KindExists and change nothing. What exists is durable when
//     they are told so.
//   - After Put returned nil the object is durable, and every later Get, Stat
//     and List anywhere sees it. After Delete returned nil none does, and that
//     is durable as well.
//   - List is complete and in ascending byte order of the keys.
//   - Delete of an absent key succeeds.
//   - Errors carry an hbackup.Kind: a missing object is KindNotFound and nothing
//     else is. A key that Validate refuses is KindUsage, before anything is read
//     or sent. A context that is over is KindInterrupted or KindTimeout. The
//     Error's Path is the object's full name, Location.At. No error text holds a
//     secret.
//
// A store on a file system cannot hold both the keys a and a/b; it refuses the
// second one with KindConflict. Keys that differ only in case, or only in the
// Unicode form of a letter, are different keys.
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
	// bytes: fewer or more fail with KindCorrupt and leave nothing visible. A
	// body that fails is given back as the cause, with its own kind. The
	// returned Object carries the digest of the bytes that were read from body.
	// Put does not close the body. When the key is taken under IfAbsent, it may
	// have read nothing of the body or all of it.
	Put(ctx context.Context, key Key, body io.Reader, opts PutOptions) (Object, error)

	// Get opens the bytes of the range. The reader fails with KindIncomplete
	// when the store delivers fewer bytes than it announced, never with a quiet
	// EOF. The Object's Size is that of the whole object. An offset beyond the
	// end is KindUsage, one at the end gives no bytes. The reader lives as long
	// as ctx does and fails with its error after that. The caller closes it, at
	// any time.
	Get(ctx context.Context, key Key, r Range) (io.ReadCloser, Object, error)

	// Stat describes one object without reading it.
	Stat(ctx context.Context, key Key) (Object, error)

	// List yields the objects whose key starts with prefix, in ascending byte
	// order, page by page as the caller advances. The prefix is compared as a
	// string: end it with '/' to mean a folder. It yields one error at most, as
	// its last element; a listing that ended in an error is incomplete. Names
	// that are no valid keys (folder markers of other tools, which end in '/')
	// are left out. A prefix under which no key can be ("../") gives nothing.
	// Objects that come or go while the listing runs may be in it or not; all
	// others are in it once.
	List(ctx context.Context, prefix string, opts ListOptions) iter.Seq2[Object, error]

	// Delete removes one object. A missing one is no error.
	Delete(ctx context.Context, key Key) error

	// DeleteBatch removes many objects in as few requests as the store allows.
	// It reports every key that is not known to be gone; the error is for a call
	// that failed as a whole, and then nothing is known of any key. An invalid key
	// is reported and does not keep the others from being deleted.
	DeleteBatch(ctx context.Context, keys []Key) ([]DeleteFailure, error)

	// ServerTime gives the store's own clock, good to a second or so. All who use
	// the location share it, so leases are measured by it.
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
	// Ours says that the object bears the mark which a put of hbackup leaves on a
	// store that keeps digests. Only Stat sets it.
	Ours bool
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
	After Key // give only what comes behind this key
	Limit int // stop after so many objects; 0 means no limit
	// Folders gives only what is directly under the prefix: of all keys with
	// another '/' behind the prefix, the part up to and with that '/', once, as an
	// object without a size. Where folders exist by themselves, one that holds no
	// object may be given, too.
	Folders bool
	// NamesOnly says that sizes and times are not wanted: where it costs extra to
	// find them out, Size is -1 and Modified the zero time.
	NamesOnly bool
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
