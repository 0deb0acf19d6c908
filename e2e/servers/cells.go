package servers

import "context"

// Tag is a cell tag. Types from 65 on are free; 8 is HBase's cell TTL.
type Tag struct {
	Type  uint8  `json:"type"`
	Value []byte `json:"value"`
}

// CellSpec is one cell to write.
type CellSpec struct {
	Row       []byte `json:"row"`
	Family    string `json:"family"`
	Qualifier []byte `json:"qualifier"`
	Timestamp int64  `json:"timestamp,omitempty"` // milliseconds since 1970; 0: the server's clock
	Value     []byte `json:"value,omitempty"`
	Tags      []Tag  `json:"tags,omitempty"`
	TTL       int64  `json:"ttl,omitempty"` // milliseconds; HBase keeps it as a tag
}

// Put writes cells in the given order, one call each.
func (h *HBase) Put(ctx context.Context, table string, cells ...CellSpec) error {
	return h.call(ctx, "put", args{"table": table, "cells": cells}, nil)
}

// DeleteKind is one of HBase's four delete markers.
type DeleteKind string

const (
	DeleteVersion       DeleteKind = "Delete"              // one cell at exactly the timestamp (0: the newest)
	DeleteColumn        DeleteKind = "DeleteColumn"        // all versions of a column up to the timestamp
	DeleteFamily        DeleteKind = "DeleteFamily"        // all columns of a family up to the timestamp
	DeleteFamilyVersion DeleteKind = "DeleteFamilyVersion" // all columns of a family at exactly the timestamp
)

// DeleteSpec is one delete marker to write.
type DeleteSpec struct {
	Kind      DeleteKind `json:"type"`
	Row       []byte     `json:"row"`
	Family    string     `json:"family"`
	Qualifier []byte     `json:"qualifier,omitempty"` // of the first two kinds
	Timestamp int64      `json:"timestamp,omitempty"` // milliseconds since 1970; 0: the server's clock
}

// Delete writes delete markers in the given order, one call each.
func (h *HBase) Delete(ctx context.Context, table string, markers ...DeleteSpec) error {
	return h.call(ctx, "delete", args{"table": table, "cells": markers}, nil)
}
