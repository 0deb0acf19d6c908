package mem

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"hbackup"
	"hbackup/storage"
)

var (
	errTaken   = errors.New("there is an object already")
	errMissing = errors.New("there is no such object")

	errNoUpload   = errors.New("there is no such upload")
	errOtherBytes = errors.New("the bytes are not those of the receipt")
)

func (s *Store) err(op string, key storage.Key, kind hbackup.Kind, cause error) error {
	return hbackup.E(op, s.location.At(key), kind, cause)
}

func (o object) describe(key storage.Key) storage.Object {
	return storage.Object{Key: key, Size: int64(len(o.data)), Digest: o.digest, HasDigest: true, Modified: o.modified}
}

// store, remove and settle are called with the lock held. The order of the keys
// is made only when a listing needs it, so that puts cost the same however many
// objects there are.
func (s *Store) store(key storage.Key, o object) {
	if _, there := s.objects[key]; !there {
		s.added = append(s.added, key)
	}
	s.objects[key] = o
}

func (s *Store) remove(key storage.Key) {
	if _, there := s.objects[key]; there {
		delete(s.objects, key)
		s.gone++
	}
}

func (s *Store) settle() {
	if len(s.added) == 0 && s.gone <= len(s.keys)/2 {
		return
	}
	slices.Sort(s.added)
	old, added := s.keys, s.added
	merged := make([]storage.Key, 0, len(s.objects))
	for len(old)+len(added) > 0 {
		from := &old
		if len(old) == 0 || len(added) > 0 && added[0] < old[0] {
			from = &added
		}
		key := (*from)[0]
		*from = (*from)[1:]
		// A key that went and came again is in both.
		if _, there := s.objects[key]; there && (len(merged) == 0 || merged[len(merged)-1] != key) {
			merged = append(merged, key)
		}
	}
	s.keys, s.added, s.gone = merged, nil, 0
}

// Clone gives an independent store with the same location, clock, objects and
// uploads: what another process would find if this one died now. Puts that are
// under way go on in the old store and are never seen in the new one.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	return &Store{location: s.location, now: s.now, permanence: s.permanence, uploads: maps.Clone(s.uploads),
		objects: maps.Clone(s.objects), keys: slices.Clone(s.keys), gone: s.gone}
}

// Snapshot gives the content of every object, for a test to compare.
func (s *Store) Snapshot() map[storage.Key][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snapshot := make(map[storage.Key][]byte, len(s.objects))
	for key, o := range s.objects {
		snapshot[key] = slices.Clone(o.data)
	}
	return snapshot
}

// Tamper changes the bytes of an object behind the store's back: its digest
// stays what it was, as when a disk decays. It reports whether there is such an
// object.
func (s *Store) Tamper(key storage.Key, change func(data []byte) []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if ok {
		o.data = change(slices.Clone(o.data))
		s.objects[key] = o
	}
	return ok
}

// reader ends with its context, as a reader over a network does.
type reader struct {
	ctx context.Context
	s   *Store
	key storage.Key
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, r.s.err("read", r.key, hbackup.KindOther, err)
	}
	return r.r.Read(p)
}

func (r *reader) Close() error { return nil }
