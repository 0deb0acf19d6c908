package servers

import "context"

// Region is one region of a table as hbase:meta has it.
type Region struct {
	Name     string `json:"name"`
	Encoded  string `json:"encoded"` // 32 hex digits
	StartKey []byte `json:"startKey"`
	EndKey   []byte `json:"endKey"`
	Server   string `json:"server"` // "host,port,startcode"; "" when it is not open
}

// Regions lists the table's regions in key order.
func (h *HBase) Regions(ctx context.Context, table string) ([]Region, error) {
	var out []Region
	err := h.call(ctx, "regions", args{"table": table}, &out)
	return out, err
}

// RegionServers lists the live region servers, "host,port,startcode".
func (h *HBase) RegionServers(ctx context.Context) ([]string, error) {
	var out []string
	err := h.call(ctx, "regionServers", args{}, &out)
	return out, err
}

// Flush writes the table's memstores to files.
func (h *HBase) Flush(ctx context.Context, table string) error {
	return h.call(ctx, "flush", args{"table": table}, nil)
}

// Compact asks for a minor compaction and returns when none runs any more.
func (h *HBase) Compact(ctx context.Context, table string) error {
	return h.call(ctx, "compact", args{"table": table, "wait": true}, nil)
}

// MajorCompact asks for a major compaction and returns when every store of the
// table has one file at most. The replaced files go to the archive a little
// later; ArchiveCompacted does it at once.
func (h *HBase) MajorCompact(ctx context.Context, table string) error {
	return h.call(ctx, "compact", args{"table": table, "major": true, "wait": true}, nil)
}

// CompactionState gives NONE, MINOR, MAJOR or MAJOR_AND_MINOR.
func (h *HBase) CompactionState(ctx context.Context, table string) (string, error) {
	var state string
	err := h.call(ctx, "compactionState", args{"table": table}, &state)
	return state, err
}

// Split splits a region, at the key or where HBase likes when it is nil, and
// gives the table's regions afterwards.
func (h *HBase) Split(ctx context.Context, table, encoded string, at []byte) ([]Region, error) {
	var out []Region
	err := h.call(ctx, "split", args{"table": table, "region": encoded, "at": at}, &out)
	return out, err
}

// MergeRegions merges regions, neighbours or not, and gives the table's regions afterwards.
func (h *HBase) MergeRegions(ctx context.Context, table string, encoded ...string) ([]Region, error) {
	var out []Region
	err := h.call(ctx, "merge", args{"table": table, "regions": encoded}, &out)
	return out, err
}

// MoveRegion moves a region to a server and returns when it is open there.
func (h *HBase) MoveRegion(ctx context.Context, table, encoded, server string) error {
	return h.call(ctx, "move", args{"table": table, "region": encoded, "server": server}, nil)
}
