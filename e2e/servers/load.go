package servers

import "context"

// LoadSpec says which rows to write. Row i of a seed is the same in every call,
// cell by cell, except for increments and appends, which take the server's
// clock. Percentages are chances per row, for tags and overwrites per cell.
type LoadSpec struct {
	Seed     int64    `json:"seed"`
	From     int64    `json:"from,omitempty"` // the first row's number
	Rows     int64    `json:"rows"`
	Prefix   string   `json:"prefix,omitempty"`   // of row keys; after it come 8 hex digits spread evenly and the row's number
	Families []string `json:"families,omitempty"` // all of the table's when empty

	Qualifiers int   `json:"qualifiers,omitempty"` // q0, q1 …; 1 when 0
	Versions   int   `json:"versions,omitempty"`   // cells per column, at rising timestamps; 1 when 0
	ValueBytes int   `json:"valueBytes"`           // random bytes, which do not compress
	BaseTime   int64 `json:"baseTime,omitempty"`   // milliseconds since 1970; 1700000000000 when 0. Row i, version v: BaseTime + 10 i + v

	OverwritePercent int   `json:"overwritePercent,omitempty"` // a second cell with the same key and timestamp
	DeletePercent    int   `json:"deletePercent,omitempty"`    // one of the four delete markers
	TagPercent       int   `json:"tagPercent,omitempty"`       // a tag of type 65
	TTLPercent       int   `json:"ttlPercent,omitempty"`       // the row's cells get a TTL
	TTLMillis        int64 `json:"ttlMillis,omitempty"`        // a day when 0
	BigPercent       int   `json:"bigPercent,omitempty"`       // values of BigBytes instead, for MOB
	BigBytes         int   `json:"bigBytes,omitempty"`         // 200000 when 0
	IncrementPercent int   `json:"incrementPercent,omitempty"` // column "counter" of the first family
	AppendPercent    int   `json:"appendPercent,omitempty"`    // column "text" of the first family

	FlushEvery int  `json:"flushEvery,omitempty"` // flush the table after so many rows; 0: not at all
	SkipWAL    bool `json:"skipWAL,omitempty"`    // write past the write-ahead log
}

// Mixed gives a load with a bit of everything that HBase can do to a cell.
func Mixed(seed, rows int64) LoadSpec {
	return LoadSpec{
		Seed: seed, Rows: rows, Qualifiers: 3, Versions: 2, ValueBytes: 24, OverwritePercent: 5, DeletePercent: 20, TagPercent: 10,
		TTLPercent: 10, IncrementPercent: 3, AppendPercent: 3,
	}
}

// Loaded says how many rows and mutations a load wrote.
type Loaded struct {
	Rows    int64 `json:"rows"`
	Puts    int64 `json:"puts"` // cells
	Deletes int64 `json:"deletes"`
	Adds    int64 `json:"adds"` // increments and appends
}

// Load writes rows with HBase's own client.
func (h *HBase) Load(ctx context.Context, table string, spec LoadSpec) (Loaded, error) {
	var out Loaded
	err := h.call(ctx, "load", struct {
		Table string `json:"table"`
		LoadSpec
	}{table, spec}, &out)
	return out, err
}

// BulkLoad writes one HFile per family with rows From … From+Rows of the seed,
// column "bulk", and has HBase take them over without the write-ahead log. Of
// the spec it uses Seed, From, Rows, Prefix, Families (needed), ValueBytes and BaseTime.
func (h *HBase) BulkLoad(ctx context.Context, table string, spec LoadSpec) (cells int64, err error) {
	var out struct {
		Cells int64 `json:"cells"`
	}
	err = h.call(ctx, "bulkLoad", struct {
		Table string `json:"table"`
		LoadSpec
	}{table, spec}, &out)
	return out.Cells, err
}
