// Package index remembers on this machine the small records that locations hold,
// so that a history of many backups is not read anew each time. It is a cache and
// nothing more: records never change once they are made, a listing of the location
// says which there are, and the index only saves reading those that it has. An
// index that is missing, damaged, of another format or in use by another process
// costs time and changes no answer.
//
// It is one bbolt file for each cluster, in which each location has its records in
// blocks of columns (indexpb), a few hundred bytes for each run. Beside it lies the
// digest of the whole file, made anew with each change: bbolt trusts its pages, so a
// file that is not what was written is never given to it.
package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"hbackup"
	"hbackup/catalog"
)

// Waiting for another process is not worth more than reading from the location.
const lockWait = 200 * time.Millisecond

// unusedFor is after how long a location that nobody asked about is forgotten.
const unusedFor = 90 * 24 * time.Hour

// Index is the index of one cluster. Its methods may be called from many goroutines
// at once and never fail: what the index does not give is read from the location.
type Index struct {
	file string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	changed map[string]catalog.Remembered // by location; Close writes it
}

// Open gives the index of a cluster in a directory, which is made when it is
// missing. The file is open only while it is read or written, so that a long run
// keeps nobody else from writing.
func Open(dir string, cluster hbackup.ClusterName, log *slog.Logger) *Index {
	return &Index{file: filepath.Join(dir, string(cluster)+".index"), log: log, now: time.Now, changed: map[string]catalog.Remembered{}}
}

// view reads the index. Nothing is read when there is none, or when it is being
// written.
func (x *Index) view(read func(*bolt.Tx) error) {
	err := guard(func() error {
		if _, err := os.Stat(x.file); err != nil {
			return err
		}
		db, err := bolt.Open(x.file, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
		if err != nil {
			return err
		}
		defer db.Close()
		// The lock is held from here on: nobody writes while the digest is compared.
		if err := checkDigest(x.file); err != nil {
			return err
		}
		return db.View(read)
	})
	switch {
	case err == nil || os.IsNotExist(err):
	case err == bolt.ErrTimeout:
		x.log.Debug("the index is in use by another process; the locations are read instead", "file", x.file)
	default:
		x.discard(err)
	}
}

// discard removes an index that cannot be used. A process that has it open goes
// on with what it has.
func (x *Index) discard(why error) {
	x.log.Info("the index is made anew", "file", x.file, "why", why)
	for _, f := range []string{x.file, digestFile(x.file)} {
		if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
			x.log.Warn("the index cannot be removed; the locations are read instead", "file", f, "error", err)
		}
	}
}

// Location gives what is remembered of one location, by the id in its marker.
func (x *Index) Location(id string) catalog.Records { return &records{x: x, location: id} }

// Close writes what was learnt. Another process that writes or reads at the moment
// is not waited for: then it is learnt again the next time.
func (x *Index) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := guard(func() error {
		if len(x.changed) == 0 {
			return nil
		}
		return x.write()
	})
	x.changed = map[string]catalog.Remembered{}
	switch {
	case err == bolt.ErrTimeout:
		x.log.Debug("the index is in use by another process and was not brought up to date", "file", x.file)
	case err != nil:
		x.discard(err)
	}
}

func (x *Index) write() error {
	if err := os.MkdirAll(filepath.Dir(x.file), 0o700); err != nil {
		return err
	}
	_, err := os.Stat(x.file)
	fresh := os.IsNotExist(err)
	db, err := bolt.Open(x.file, 0o600, &bolt.Options{Timeout: lockWait, NoSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer db.Close()
	if !fresh {
		// Another process may have written since, and that is fine; damage is not.
		if err := checkDigest(x.file); err != nil {
			return err
		}
	}
	if err := db.Update(x.apply); err != nil {
		return err
	}
	return writeDigest(x.file)
}

// Keys in the bucket of a location. usedKey tells when it was last asked about.
var (
	usedKey   = []byte("used")
	runsBlock = []byte("runs/")
	jobsBlock = []byte("jobs/")
)

func (x *Index) apply(tx *bolt.Tx) error {
	now := binary.BigEndian.AppendUint64(nil, uint64(x.now().Unix()))
	for location, known := range x.changed {
		b, err := tx.CreateBucketIfNotExists([]byte(location))
		if err != nil {
			return err
		}
		if err := replace(b, runsBlock, sized(known), blockRuns, encodeRuns); err != nil {
			return err
		}
		if err := replace(b, jobsBlock, known.Jobs, blockJobs, encodeJobs); err != nil {
			return err
		}
		if err := b.Put(usedKey, now); err != nil {
			return err
		}
	}
	return x.forgetUnused(tx)
}

// replace puts the rows into blocks under the prefix and leaves no others there.
func replace[T any](b *bolt.Bucket, prefix []byte, rows []T, size int, encode func([]T) ([]byte, error)) error {
	keep := map[string]bool{}
	n := uint32(0)
	for block := range slices.Chunk(rows, size) {
		key := binary.BigEndian.AppendUint32(bytes.Clone(prefix), n)
		n++
		value, err := encode(block)
		if err != nil {
			return err
		}
		keep[string(key)] = true
		if bytes.Equal(b.Get(key), value) {
			continue
		}
		if err := b.Put(key, value); err != nil {
			return err
		}
	}
	var gone [][]byte
	c := b.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		if !keep[string(k)] {
			gone = append(gone, bytes.Clone(k))
		}
	}
	for _, k := range gone {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) forgetUnused(tx *bolt.Tx) error {
	var unused [][]byte
	err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		at := b.Get(usedKey)
		if len(at) != 8 || x.now().Sub(time.Unix(int64(binary.BigEndian.Uint64(at)), 0)) > unusedFor {
			unused = append(unused, bytes.Clone(name))
		}
		return nil
	})
	for _, name := range unused {
		if err == nil {
			err = tx.DeleteBucket(name)
		}
	}
	return err
}

// guard turns a panic of bbolt about a page that cannot be, or a fault because
// somebody cut the file, into an error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the index is damaged: %v", r)
		}
	}()
	return f()
}

// records is the part of an index that is about one location.
type records struct {
	x        *Index
	location string
}

// Load gives what is remembered.
func (r *records) Load() catalog.Remembered {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	var known catalog.Remembered
	whole := false
	x.view(func(tx *bolt.Tx) (err error) {
		b := tx.Bucket([]byte(r.location))
		if b == nil {
			return nil
		}
		known.Runs, err = blocks(b, runsBlock, func(b []byte) ([]catalog.Entry, error) {
			runs, sizes, err := unmarshalRuns(b)
			known.Sizes = append(known.Sizes, sizes...)
			return runs, err
		})
		if err != nil {
			return err
		}
		known.Jobs, err = blocks(b, jobsBlock, unmarshalJobs)
		whole = err == nil
		return err
	})
	if !whole {
		return catalog.Remembered{}
	}
	return known
}

// blocks gives the rows of all blocks under the prefix.
func blocks[T any](b *bolt.Bucket, prefix []byte, decode func([]byte) ([]T, error)) ([]T, error) {
	var all []T
	c := b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		rows, err := decode(v)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = rows
		} else {
			all = append(all, rows...)
		}
	}
	return all, nil
}

// Save replaces what is remembered; Close writes it.
func (r *records) Save(known catalog.Remembered) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.x.changed[r.location] = known
}
