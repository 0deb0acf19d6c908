package servers

import (
	"context"
	"time"
)

// SnapshotInfo is a completed snapshot of the cluster.
type SnapshotInfo struct {
	Name    string `json:"name"`
	Table   string `json:"table"`
	Type    string `json:"type"`    // FLUSH, SKIPFLUSH, DISABLED
	Created int64  `json:"created"` // milliseconds since 1970
}

// Time is when the snapshot was begun.
func (s SnapshotInfo) Time() time.Time { return time.UnixMilli(s.Created).UTC() }

// Snapshot takes a snapshot with HBase's own client, flushing first.
func (h *HBase) Snapshot(ctx context.Context, table, name string) error {
	return h.call(ctx, "snapshot", args{"table": table, "snapshot": name}, nil)
}

// SnapshotSkipFlush takes a snapshot of what is in files already.
func (h *HBase) SnapshotSkipFlush(ctx context.Context, table, name string) error {
	return h.call(ctx, "snapshot", args{"table": table, "snapshot": name, "type": "SKIPFLUSH"}, nil)
}

// CloneSnapshot makes a new table from a snapshot.
func (h *HBase) CloneSnapshot(ctx context.Context, name, table string) error {
	return h.call(ctx, "cloneSnapshot", args{"table": table, "snapshot": name}, nil)
}

// RestoreSnapshot puts the table back to the snapshot, in place.
func (h *HBase) RestoreSnapshot(ctx context.Context, name, table string) error {
	return h.call(ctx, "restoreSnapshot", args{"table": table, "snapshot": name}, nil)
}

// DeleteSnapshot removes a snapshot.
func (h *HBase) DeleteSnapshot(ctx context.Context, name string) error {
	return h.call(ctx, "deleteSnapshot", args{"snapshot": name}, nil)
}

// ListSnapshots lists the completed snapshots.
func (h *HBase) ListSnapshots(ctx context.Context) ([]SnapshotInfo, error) {
	var out []SnapshotInfo
	err := h.call(ctx, "listSnapshots", args{}, &out)
	return out, err
}
