package mem

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"slices"

	"hbackup"
	"hbackup/storage"
)

// held is an upload that is neither finished nor dropped.
type held struct {
	key   storage.Key
	stamp string
	data  []byte // nil until it is filled
}

// WithPermanence makes the store say that of its objects. They can be deleted all
// the same.
func WithPermanence(p storage.Permanence) Option { return func(s *Store) { s.permanence = p } }

// Permanence gives what WithPermanence set.
func (s *Store) Permanence(context.Context) (storage.Permanence, string, error) {
	if s.permanence == "" {
		return storage.Deletable, "", nil
	}
	return s.permanence, "it was made so", nil
}

// OpenUpload notes an upload.
func (s *Store) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := storage.CheckOpen(ctx, s.location, key, stamp); err != nil {
		return storage.Ticket{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := rand.Text()
	s.uploads[id] = held{key: key, stamp: stamp}
	return storage.Ticket{Key: key, ID: id, Stamp: stamp}, nil
}

// FillUpload reads the whole body, then keeps it.
func (s *Store) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	if err := storage.CheckFill(ctx, s.location, t, opts); err != nil {
		return storage.Receipt{}, err
	}
	b := storage.NewBody(ctx, body, opts)
	data, err := io.ReadAll(b)
	if err != nil {
		return storage.Receipt{}, s.err("fill upload", t.Key, hbackup.KindOther, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, open := s.uploads[t.ID]
	if !open || u.key != t.Key {
		return storage.Receipt{}, s.err("fill upload", t.Key, hbackup.KindConflict, errNoUpload)
	}
	u.data = data
	s.uploads[t.ID] = u
	return storage.Receipt{Ticket: t, Size: opts.Size, Digest: b.Digest(), Parts: []storage.HeldPart{{Tag: b.Digest().String()}}}, nil
}

// FinishUpload publishes what was kept.
func (s *Store) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := storage.CheckFinish(ctx, s.location, r); err != nil {
		return storage.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there, taken := s.objects[r.Key]
	u, open := s.uploads[r.ID]
	open = open && u.key == r.Key
	right := func(data []byte) bool {
		return int64(len(data)) == r.Size && storage.DigestOf(data) == r.Digest
	}
	switch {
	case taken && (there.stamp == r.Stamp || right(there.data)):
		if !right(there.data) {
			return storage.Object{}, s.err("finish upload", r.Key, hbackup.KindCorrupt, errOtherBytes)
		}
		if open {
			delete(s.uploads, r.ID)
		}
		return there.describe(r.Key), nil
	case taken:
		return storage.Object{}, s.err("finish upload", r.Key, hbackup.KindExists, errTaken)
	case !open:
		return storage.Object{}, s.err("finish upload", r.Key, hbackup.KindConflict, errNoUpload)
	case u.data == nil || !right(u.data) || len(r.Parts) != 1 || r.Parts[0].Tag != r.Digest.String():
		return storage.Object{}, s.err("finish upload", r.Key, hbackup.KindCorrupt, errOtherBytes)
	}
	o := object{data: u.data, digest: r.Digest, modified: s.now(), stamp: u.stamp}
	s.store(r.Key, o)
	delete(s.uploads, r.ID)
	return o.describe(r.Key), nil
}

// DropUpload forgets the upload.
func (s *Store) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := storage.CheckTicket(ctx, "drop upload", s.location, t); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, open := s.uploads[t.ID]; open && u.key == t.Key {
		delete(s.uploads, t.ID)
	}
	return nil
}

// OpenUploads lists what is open for the key.
func (s *Store) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := storage.Check(ctx, "list uploads of", s.location, key); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var open []storage.Ticket
	for _, id := range slices.Sorted(maps.Keys(s.uploads)) {
		if s.uploads[id].key == key {
			open = append(open, storage.Ticket{Key: key, ID: id})
		}
	}
	return open, nil
}

// Uploads gives the keys of all uploads that are open, sorted, for a test to look at.
func (s *Store) Uploads() []storage.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []storage.Key
	for _, u := range s.uploads {
		keys = append(keys, u.key)
	}
	slices.Sort(keys)
	return keys
}

var _ interface {
	storage.Holder
	storage.Keeper
} = (*Store)(nil)
