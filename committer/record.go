package committer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// RecordFormat is the version of job records of uploads that is written, and the
// newest that is read.
const RecordFormat = 1

// segment is one object of the job record of an attempt at an image, an attempt
// being one process at work on it. It says what has happened since the one
// before; all of them together, in any order, say all.
type segment struct {
	Format  int    `json:"format"`
	Attempt string `json:"attempt"` // also the stamp of its uploads
	// Intended are keys of which uploads are opened from now on. Until its ticket is
	// on record, an upload of such a key can only be found by asking the store for
	// the uploads of that key.
	Intended []storage.Key `json:"intended,omitempty"`
	// Opened are the tickets of uploads.
	Opened []storage.Ticket `json:"opened,omitempty"`
	// Filled are uploads that need nothing but to be finished.
	Filled []Filled `json:"filled,omitempty"`
}

// Filled is a store file that the store holds as an upload, whole and judged.
type Filled struct {
	storage.Receipt
	Cells int64 `json:"cells"` // entries of the HFile
}

// attempt is what the record of one attempt says.
type attempt struct {
	name     string
	keys     []storage.Key // of the record's own objects
	closed   bool          // nothing is left of it
	damaged  error         // why the record cannot be read; then nothing is done about it
	intended map[storage.Key]bool
	opened   map[string]storage.Ticket // by upload id
	filled   map[storage.Key]Filled
}

const closedName = "closed.json"

// Closes reports whether the object of that name in the record of an attempt says
// that nothing is left of it.
func Closes(name string) bool { return name == closedName }

func segmentKey(folder, attempt string, n int) storage.Key {
	return storage.Key(fmt.Sprintf("%s%s/%06d.json", folder, attempt, n))
}

func closedKey(folder, attempt string) storage.Key {
	return storage.Key(folder + attempt + "/" + closedName)
}

// maxSegmentBytes bounds a segment; a receipt has at most 10,000 parts.
const maxSegmentBytes = 1 << 30

// readAttempts reads the job record of an image.
func readAttempts(ctx context.Context, s storage.Store, folder string) ([]*attempt, error) {
	var all []*attempt
	for o, err := range s.List(ctx, folder, storage.ListOptions{}) {
		if err != nil {
			return nil, hbackup.E("list uploads on record in", s.Location().At(storage.Key(folder)), hbackup.KindOther, err)
		}
		name, rest, ok := strings.Cut(strings.TrimPrefix(string(o.Key), folder), "/")
		if !ok {
			continue
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &attempt{name: name, intended: map[storage.Key]bool{}, opened: map[string]storage.Ticket{}, filled: map[storage.Key]Filled{}})
		}
		a := all[len(all)-1]
		a.keys = append(a.keys, o.Key)
		a.closed = a.closed || rest == closedName
	}
	for _, a := range all {
		if a.closed {
			continue
		}
		for _, key := range a.keys {
			if err := a.read(ctx, s, key); err != nil {
				if ctx.Err() != nil || hbackup.Retryable(err) {
					return nil, err
				}
				a.damaged = err
				break
			}
		}
	}
	return all, nil
}

// read adds what one segment says.
func (a *attempt) read(ctx context.Context, s storage.Store, key storage.Key) error {
	path := s.Location().At(key)
	data, _, err := storage.ReadAll(ctx, s, key, maxSegmentBytes)
	if err != nil {
		return hbackup.E("read uploads on record", path, hbackup.KindOther, err)
	}
	var g segment
	if err := json.Unmarshal(data, &g); err != nil {
		return hbackup.E("read uploads on record", path, hbackup.KindCorrupt, err)
	}
	switch {
	case g.Format > RecordFormat:
		return hbackup.Errorf("read uploads on record", path, hbackup.KindUnsupported, "it has format %d, this hbackup reads %d", g.Format, RecordFormat).WithHint("use a newer hbackup")
	case g.Format < 1 || g.Attempt != a.name:
		return hbackup.Errorf("read uploads on record", path, hbackup.KindCorrupt, "format %d, attempt %q", g.Format, g.Attempt)
	}
	for _, k := range g.Intended {
		a.intended[k] = true
	}
	for _, t := range g.Opened {
		a.opened[t.ID] = t
	}
	for _, f := range g.Filled {
		a.filled[f.Key] = f
	}
	return nil
}

// unaccounted gives the keys of which there may be an upload without a ticket.
func (a *attempt) unaccounted() []storage.Key {
	sure := map[storage.Key]bool{}
	for _, t := range a.opened {
		if !t.Doubtful {
			sure[t.Key] = true
		}
	}
	var keys []storage.Key
	for k := range a.intended {
		if !sure[k] {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// write puts one segment. Each has a number of its own: one whose answer was lost
// may be there twice, and says the same twice.
func (g segment) write(ctx context.Context, s storage.Store, folder string, n int) error {
	g.Format = RecordFormat
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	key := segmentKey(folder, g.Attempt, n)
	if _, err := storage.PutBytes(ctx, s, key, append(data, '\n'), true); err != nil {
		return hbackup.E("record uploads", s.Location().At(key), hbackup.KindOther, err)
	}
	return nil
}

// closeRecord notes that nothing is left of an attempt: its objects are deleted,
// or where they would stay, marked by one more.
func closeRecord(ctx context.Context, s storage.Store, folder, attempt string, keys []storage.Key, keeps bool) error {
	if !keeps {
		failures, err := s.DeleteBatch(ctx, keys)
		if err == nil && len(failures) > 0 {
			err = failures[0].Err
		}
		if err == nil || hbackup.Retryable(err) { // the next one to tidy tries again
			return err
		}
	}
	key := closedKey(folder, attempt)
	_, err := storage.PutBytes(ctx, s, key, fmt.Appendf(nil, "{\"format\": %d}\n", RecordFormat), true)
	if err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
		return hbackup.E("close record of uploads", s.Location().At(key), hbackup.KindOther, err)
	}
	return nil
}
