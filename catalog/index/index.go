// Package index remembers on this machine the small records that locations hold,
// so that a history of many backups is not read anew each time. It is a cache and
// nothing more: records never change once they are made, a listing of the location
// says which there are, and the index only saves reading those that it has. An
// index that is missing, damaged, of another format or in use by another process
// costs time and changes no answer.
//
// It is one bbolt file for each cluster. Beside it lies the digest of the whole
// file, made anew with each change: bbolt trusts its pages, so a file that is not
// what was written is never given to it.
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
	"hbackup/storage"
)

// Waiting for another process is not worth more than reading from the location.
const lockWait = 200 * time.Millisecond

// Largest record that is worth remembering, in bytes.
const maxRecord = 8 << 20

// unusedFor is after how long a location that nobody asked about is forgotten.
const unusedFor = 90 * 24 * time.Hour

// Index is the index of one cluster. Its methods may be called from many goroutines
// at once and never fail: what the index does not give is read from the location.
type Index struct {
	file string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	db      *bolt.DB // read only; nil when there is nothing to read
	tx      *bolt.Tx
	changes map[string]*change // by location
}

// change is what Close has to write about one location.
type change struct {
	put    map[string][]byte
	forget []string
}

// Open opens the index of a cluster in a directory, which is made when it is
// missing.
func Open(dir string, cluster hbackup.ClusterName, log *slog.Logger) *Index {
	x := &Index{file: filepath.Join(dir, string(cluster)+".index"), log: log, now: time.Now, changes: map[string]*change{}}
	err := guard(x.open)
	switch {
	case err == nil || os.IsNotExist(err):
	case err == bolt.ErrTimeout:
		log.Debug("the index is in use by another process; the locations are read instead", "file", x.file)
	default:
		x.discard(err)
	}
	return x
}

func (x *Index) open() error {
	if _, err := os.Stat(x.file); err != nil {
		return err
	}
	db, err := bolt.Open(x.file, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return err
	}
	// The lock is held from here on: nobody writes while the digest is compared.
	if err := checkDigest(x.file); err != nil {
		db.Close()
		return err
	}
	tx, err := db.Begin(false)
	if err != nil {
		db.Close()
		return err
	}
	x.db, x.tx = db, tx
	return nil
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
		x.closeReader()
		if len(x.changes) == 0 {
			return nil
		}
		return x.write()
	})
	x.changes = map[string]*change{}
	switch {
	case err == bolt.ErrTimeout:
		x.log.Debug("the index is in use by another process and was not brought up to date", "file", x.file)
	case err != nil:
		x.discard(err)
	}
}

func (x *Index) closeReader() {
	if x.db == nil {
		return
	}
	db, tx := x.db, x.tx
	x.db, x.tx = nil, nil
	tx.Rollback()
	db.Close()
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

// usedKey tells in each location's bucket when it was last asked about; records'
// keys begin with a letter.
var usedKey = []byte("\x00used")

func (x *Index) apply(tx *bolt.Tx) error {
	now := binary.BigEndian.AppendUint64(nil, uint64(x.now().Unix()))
	for location, c := range x.changes {
		b, err := tx.CreateBucketIfNotExists([]byte(location))
		if err != nil {
			return err
		}
		for _, key := range c.forget {
			if err := b.Delete([]byte(key)); err != nil {
				return err
			}
		}
		keys := make([]string, 0, len(c.put))
		for key := range c.put {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			if err := b.Put([]byte(key), c.put[key]); err != nil {
				return err
			}
		}
		if err := b.Put(usedKey, now); err != nil {
			return err
		}
	}
	return x.forgetUnused(tx)
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

func (x *Index) changeOf(location string) *change {
	c := x.changes[location]
	if c == nil {
		c = &change{put: map[string][]byte{}}
		x.changes[location] = c
	}
	return c
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

// Get gives the record under the key if it is remembered with that size.
func (r *records) Get(key storage.Key, size int64) []byte {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	var found []byte
	err := guard(func() error {
		if c := r.x.changes[r.location]; c != nil {
			found = c.put[string(key)]
		}
		if b := r.bucket(); found == nil && b != nil {
			found = bytes.Clone(b.Get([]byte(key)))
		}
		return nil
	})
	if err != nil || int64(len(found)) != size {
		return nil
	}
	return found
}

func (r *records) bucket() *bolt.Bucket {
	if r.x.tx == nil {
		return nil
	}
	return r.x.tx.Bucket([]byte(r.location))
}

// Put remembers a record.
func (r *records) Put(key storage.Key, record []byte) {
	if len(record) == 0 || len(record) > maxRecord || len(key) > bolt.MaxKeySize {
		return
	}
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.x.changeOf(r.location).put[string(key)] = record
}

// Retain forgets what is remembered under the prefix and is not among the keys,
// which are ascending.
func (r *records) Retain(prefix string, keys []storage.Key) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	err := guard(func() error {
		b := r.bucket()
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, _ := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, _ = c.Next() {
			for len(keys) > 0 && string(keys[0]) < string(k) {
				keys = keys[1:]
			}
			if len(keys) == 0 || string(keys[0]) != string(k) {
				change := r.x.changeOf(r.location)
				change.forget = append(change.forget, string(k))
			}
		}
		return nil
	})
	if err != nil {
		r.x.log.Debug("the index could not be read", "file", r.x.file, "error", err)
	}
}
