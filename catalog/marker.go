package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hbackup"
	"hbackup/storage"
)

// LocationFormat is the version of the layout that is written, and the newest that is read.
const LocationFormat = 1

// Marker is the content of hbackup.json: it says that a location is ours, in
// which version of the layout, and which one it is when it was moved.
type Marker struct {
	Format  int       `json:"format"`
	ID      string    `json:"location"` // 32 random hex digits
	Created time.Time `json:"created"`
	Writer  string    `json:"writer"`
}

// maxRecordBytes bounds the small JSON records; run records of very many tables
// are the largest.
const maxRecordBytes = 256 << 20

// ReadMarker reads the marker of a location. A location without one is
// KindNotFound, one of a newer layout KindUnsupported.
func ReadMarker(ctx context.Context, s storage.Store) (Marker, error) {
	var m Marker
	path := string(s.Location()) + "/" + string(MarkerKey)
	b, _, err := storage.ReadAll(ctx, s, MarkerKey, 1<<20)
	if err != nil {
		return m, hbackup.E("read location marker", path, hbackup.KindOther, err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, hbackup.E("read location marker", path, hbackup.KindCorrupt, err)
	}
	if m.Format > LocationFormat {
		return m, hbackup.Errorf("read location marker", path, hbackup.KindUnsupported, "the location has format %d, this hbackup knows %d", m.Format, LocationFormat).
			WithHint("use a newer hbackup")
	}
	if m.Format < 1 || m.ID == "" {
		return m, hbackup.Errorf("read location marker", path, hbackup.KindCorrupt, "format %d, location id %q", m.Format, m.ID)
	}
	return m, nil
}

// create stores v as JSON under a key that must be free. An answer that was lost
// is settled.
func create(ctx context.Context, s storage.Store, key storage.Key, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_, err = storage.PutBytes(ctx, s, key, b, true)
	if err == nil || hbackup.IsKind(err, hbackup.KindExists) {
		return err
	}
	return storage.SettleCreate(ctx, s, key, b, err)
}

// read loads a JSON record of a known format.
func read(ctx context.Context, s storage.Store, key storage.Key, v any, format *int, newest int) error {
	b, err := readRecord(ctx, s, key)
	if err != nil {
		return err
	}
	return decodeRecord(s.Location().At(key), b, v, format, newest)
}

func readRecord(ctx context.Context, s storage.Store, key storage.Key) ([]byte, error) {
	b, _, err := storage.ReadAll(ctx, s, key, maxRecordBytes)
	if err != nil {
		return nil, hbackup.E("read record", s.Location().At(key), hbackup.KindOther, err)
	}
	return b, nil
}

func decodeRecord(path string, b []byte, v any, format *int, newest int) error {
	if err := json.Unmarshal(b, v); err != nil {
		return hbackup.E("read record", path, hbackup.KindCorrupt, err)
	}
	if *format > newest {
		return hbackup.Errorf("read record", path, hbackup.KindUnsupported, "it has format %d, this hbackup reads %d", *format, newest).WithHint("use a newer hbackup")
	}
	if *format < 1 {
		return hbackup.E("read record", path, hbackup.KindCorrupt, fmt.Errorf("it has no format number"))
	}
	return nil
}
