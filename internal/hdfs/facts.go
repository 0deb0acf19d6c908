package hdfs

import (
	"context"
	"errors"
	"os"
)

// Facts are what the name node says of itself and of a directory. Sizes are in
// bytes, before replication where not said otherwise.
type Facts struct {
	Capacity, Remaining uint64 // of all data nodes, replicas included
	Replication         int    // of new files, unless one says otherwise
	BlockSize           int64  // likewise
	Sealed              bool   // data nodes want sealed transfers (dfs.encrypt.data.transfer)

	// Quotas of the directory itself, those above it not included; 0 for none.
	NameQuota, Names      int64 // files and directories
	SpaceQuota, SpaceUsed int64 // replicas included
}

// Facts asks the name node. A directory that is missing has no quota.
func (h *FS) Facts(ctx context.Context, path string) (f Facts, err error) {
	const op = "ask for the facts of"
	if err := h.check(ctx, op, path); err != nil {
		return f, err
	}
	err = h.call(ctx, op, path, repeatable, func(s *session) error {
		disks, err := s.client.StatFs()
		if err != nil {
			return err
		}
		defaults, err := s.client.ServerDefaults()
		if err != nil {
			return err
		}
		f = Facts{Capacity: disks.Capacity, Remaining: disks.Remaining, Replication: defaults.Replication, BlockSize: defaults.BlockSize, Sealed: defaults.EncryptDataTransfer}
		sum, err := s.client.GetContentSummary(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		// No quota is said as the largest number there is.
		if q := int64(sum.NameQuota()); q > 0 && q < 1<<62 {
			f.NameQuota, f.Names = q, int64(sum.FileCount()+sum.DirectoryCount())
		}
		if q := sum.SpaceQuota(); q > 0 && q < 1<<62 {
			f.SpaceQuota, f.SpaceUsed = q, sum.SizeAfterReplication()
		}
		return nil
	})
	return f, err
}
