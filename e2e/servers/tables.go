package servers

import (
	"context"
	"fmt"
)

// TableSpec describes a table to make. Zero values mean HBase's defaults.
type TableSpec struct {
	Name       string            `json:"table"` // "qualifier" or "namespace:qualifier"; the name space is made when missing
	Families   []FamilySpec      `json:"families"`
	SplitKeys  [][]byte          `json:"splitKeys,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // of the table: DURABILITY, MAX_FILESIZE, hbase.store.file-tracker.impl …
}

// FamilySpec describes a column family.
type FamilySpec struct {
	Name          string            `json:"name"`
	Versions      int               `json:"versions,omitempty"`
	MinVersions   int               `json:"minVersions,omitempty"`
	TTL           int               `json:"ttl,omitempty"` // seconds
	BlockSize     int               `json:"blockSize,omitempty"`
	Compression   string            `json:"compression,omitempty"` // NONE, GZ, SNAPPY, ZSTD (the last two: HBase 2.6 only)
	Encoding      string            `json:"encoding,omitempty"`    // NONE, PREFIX, DIFF, FAST_DIFF, ROW_INDEX_V1
	Bloom         string            `json:"bloom,omitempty"`       // ROW, ROWCOL, NONE
	KeepDeleted   string            `json:"keepDeleted,omitempty"` // FALSE, TRUE, TTL
	MOB           bool              `json:"mob,omitempty"`
	MOBThreshold  int64             `json:"mobThreshold,omitempty"` // bytes; 100 KiB when 0
	Attributes    map[string]string `json:"attributes,omitempty"`
	Configuration map[string]string `json:"configuration,omitempty"`
}

// Families describes families with HBase's defaults.
func Families(names ...string) []FamilySpec {
	var out []FamilySpec
	for _, n := range names {
		out = append(out, FamilySpec{Name: n})
	}
	return out
}

// HexSplits gives the split keys of n regions of about the same size for the
// row keys that Load makes without a prefix.
func HexSplits(n int) [][]byte {
	var keys [][]byte
	for i := 1; i < n; i++ {
		keys = append(keys, fmt.Appendf(nil, "%08x", uint64(i)<<32/uint64(n)))
	}
	return keys
}

// CreateTable makes a table, and its name space when that is missing.
func (h *HBase) CreateTable(ctx context.Context, spec TableSpec) error {
	return h.call(ctx, "createTable", spec, nil)
}

// ModifyTable gives an existing table this schema; the name space and split keys are not looked at.
func (h *HBase) ModifyTable(ctx context.Context, spec TableSpec) error {
	return h.call(ctx, "modifyTable", spec, nil)
}

// CreateNamespace makes a name space and reports whether it was missing.
func (h *HBase) CreateNamespace(ctx context.Context, name string, configuration map[string]string) (made bool, err error) {
	err = h.call(ctx, "createNamespace", args{"namespace": name, "configuration": configuration}, &made)
	return made, err
}

// DeleteNamespace removes an empty name space.
func (h *HBase) DeleteNamespace(ctx context.Context, name string) error {
	return h.call(ctx, "deleteNamespace", args{"namespace": name}, nil)
}

// Schema is a table's descriptor as plain strings, without the table's name.
type Schema struct {
	Attributes map[string]string            `json:"attributes"`
	Families   map[string]map[string]string `json:"families"`
}

// Describe gives the table's schema, to compare a restored one with it.
func (h *HBase) Describe(ctx context.Context, table string) (Schema, error) {
	var s Schema
	err := h.call(ctx, "describe", args{"table": table}, &s)
	return s, err
}

// ListTables gives the user tables by full name ("default:" spelled out) with "enabled" or "disabled".
func (h *HBase) ListTables(ctx context.Context) (map[string]string, error) {
	var out map[string]string
	err := h.call(ctx, "listTables", args{}, &out)
	return out, err
}

// Disable takes the table's regions offline.
func (h *HBase) Disable(ctx context.Context, table string) error {
	return h.call(ctx, "disable", args{"table": table}, nil)
}

// Enable brings the table's regions online.
func (h *HBase) Enable(ctx context.Context, table string) error {
	return h.call(ctx, "enable", args{"table": table}, nil)
}

// Reopen disables and enables the table: its regions read their files anew.
func (h *HBase) Reopen(ctx context.Context, table string) error {
	return h.call(ctx, "reopen", args{"table": table}, nil)
}

// Drop disables the table if need be and deletes it.
func (h *HBase) Drop(ctx context.Context, table string) error {
	return h.call(ctx, "drop", args{"table": table}, nil)
}

// Truncate empties the table and leaves it enabled, with or without its region borders.
func (h *HBase) Truncate(ctx context.Context, table string, keepSplits bool) error {
	return h.call(ctx, "truncate", args{"table": table, "dropSplits": !keepSplits}, nil)
}
