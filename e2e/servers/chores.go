package servers

import (
	"context"
	"time"

	"hbackup"
)

// Peer is a replication peer.
type Peer struct {
	ID      string `json:"id"`
	Enabled bool   `json:"enabled"`
	Cluster string `json:"cluster"`
}

// EagerCleaners are settings that let RunCleaner delete everything in the
// archive and among the old logs that nothing protects, however new it is, and
// that keep the cleaners from running by themselves.
func EagerCleaners() Settings {
	return Settings{
		"hbase.master.hfilecleaner.ttl": "0",
		"hbase.master.logcleaner.ttl":   "0",
		"hbase.master.cleaner.interval": "3600000",
	}
}

// RunCatalogJanitor has the master clean hbase:meta and the parents of finished
// splits and merges now; it gives how many it cleaned.
func (h *HBase) RunCatalogJanitor(ctx context.Context) (cleaned int, err error) {
	err = h.call(ctx, "runCatalogJanitor", args{}, &cleaned)
	return cleaned, err
}

// RunCleaner runs the cleaners of old logs and archived HFiles and returns when
// they are through. clean: both reached the end of their directories with
// nothing that failed.
func (h *HBase) RunCleaner(ctx context.Context) (clean bool, err error) {
	err = h.call(ctx, "runCleaner", args{}, &clean)
	return clean, err
}

// RefreshSnapshotCache has the HFile cleaner read the snapshots again. By itself
// it does so only when it meets a file that it does not know, and every five
// minutes: until then the files of a deleted snapshot stay. Do not call it in a
// test that wants to see whether the cleaner notices a new snapshot.
func (h *HBase) RefreshSnapshotCache(ctx context.Context) error {
	return h.call(ctx, "refreshSnapshotCache", args{}, nil)
}

// SetCleaner switches the master's cleaners.
func (h *HBase) SetCleaner(ctx context.Context, on bool) error {
	return h.call(ctx, "setCleaner", args{"on": on}, nil)
}

// SetBalancer switches the balancer.
func (h *HBase) SetBalancer(ctx context.Context, on bool) error {
	return h.call(ctx, "setBalancer", args{"on": on}, nil)
}

// SetSplitMerge switches splits and merges, those asked for as well.
func (h *HBase) SetSplitMerge(ctx context.Context, split, merge bool) error {
	return h.call(ctx, "setSplitMerge", args{"split": split, "merge": merge}, nil)
}

// SetCompaction switches compactions, those asked for as well.
func (h *HBase) SetCompaction(ctx context.Context, on bool) error {
	return h.call(ctx, "setCompaction", args{"on": on}, nil)
}

// RollLogs has every region server begin a new write-ahead log.
func (h *HBase) RollLogs(ctx context.Context) error { return h.call(ctx, "rollLogs", args{}, nil) }

// ArchiveCompacted moves files that compactions have replaced to the archive
// now, except those that a scan still reads.
func (h *HBase) ArchiveCompacted(ctx context.Context) error {
	return h.call(ctx, "archiveCompacted", args{}, nil)
}

// Peers lists the replication peers.
func (h *HBase) Peers(ctx context.Context) ([]Peer, error) {
	var out []Peer
	err := h.call(ctx, "listPeers", args{}, &out)
	return out, err
}

// Shutdown ends HBase in good order: regions are flushed and closed, logs go to
// oldWALs. Restart brings it back.
func (h *HBase) Shutdown(ctx context.Context) error {
	if err := h.call(ctx, "shutdown", args{}, nil); err != nil {
		return err
	}
	select {
	case <-h.process.ended:
		if h.process.err != nil {
			return h.process.failure("shut down")
		}
		return nil
	case <-ctx.Done():
		return hbackup.E("shut down", h.String(), hbackup.KindOther, context.Cause(ctx))
	case <-time.After(time.Minute):
		return hbackup.Errorf("shut down", h.String(), hbackup.KindTimeout, "still running after a minute").WithHint("its log is %s", h.LogFile())
	}
}
