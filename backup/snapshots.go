package backup

import (
	"context"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
)

// takeSnapshot takes the snapshot, or takes over the one of that name that an
// earlier try of this run has left.
func (r *run) takeSnapshot(ctx context.Context, name string, t hbackup.TableName) (rpc.SnapshotInfo, error) {
	info, found, err := r.findSnapshot(ctx, name)
	if err != nil {
		return info, err
	}
	if !found {
		err := r.src.Master.Snapshot(ctx, rpc.SnapshotRequest{Name: name, Table: t, TTL: r.opts.SnapshotTTL})
		if err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
			return info, hbackup.E("take snapshot of", t.String(), hbackup.KindOther, err)
		}
		if info, found, err = r.findSnapshot(ctx, name); err != nil {
			return info, err
		}
	}
	if !found {
		return info, hbackup.Errorf("take snapshot of", t.String(), hbackup.KindIncomplete, "HBase said that %s is complete and does not list it", name).
			WithHint("the user of hbackup must own its snapshots, or be an administrator")
	}
	if info.Table != t {
		return info, hbackup.Errorf("take snapshot of", t.String(), hbackup.KindConflict, "there is a snapshot %s of table %s", name, info.Table)
	}
	return info, nil
}

func (r *run) findSnapshot(ctx context.Context, name string) (rpc.SnapshotInfo, bool, error) {
	all, err := r.src.Master.Snapshots(ctx)
	if err != nil {
		return rpc.SnapshotInfo{}, false, hbackup.E("list snapshots of", string(r.req.Cluster), hbackup.KindOther, err)
	}
	for _, s := range all {
		if s.Name == name {
			return s, true, nil
		}
	}
	return rpc.SnapshotInfo{}, false, nil
}

// stillThere fails when the snapshot was deleted, or replaced, since it was taken.
func (r *run) stillThere(ctx context.Context, taken rpc.SnapshotInfo) error {
	now, found, err := r.findSnapshot(ctx, taken.Name)
	if err != nil {
		return err
	}
	if !found || !now.Created.Equal(taken.Created) {
		return hbackup.Errorf("back up", taken.Table.String(), hbackup.KindIncomplete, "the snapshot %s was deleted during the copy", taken.Name).
			WithHint("somebody, or a snapshot TTL shorter than the copy, deletes snapshots named %s*; stop that and run the backup again", snapshotPrefix)
	}
	return nil
}

func (r *run) dropSnapshot(ctx context.Context, name string) error {
	return r.src.Master.DeleteSnapshot(ctx, name)
}

// dropLeftovers deletes the snapshots of runs of this cluster that have died. A
// snapshot whose run is not known in this location may belong to a run that
// writes elsewhere: it is left to its TTL. Failing here does not fail the run.
func (r *run) dropLeftovers(ctx context.Context) {
	all, err := r.src.Master.Snapshots(ctx)
	if err != nil {
		r.opts.Log.Warn("leftover snapshots cannot be looked for", "error", err)
		return
	}
	for _, s := range all {
		cluster, image, ours := parseSnapshotName(s.Name)
		if !ours || cluster != r.req.Cluster {
			continue
		}
		backup, err := image.Backup()
		if err != nil || backup == r.job.Backup {
			continue
		}
		dead, err := catalog.Dead(ctx, r.store, backup)
		if err == nil && dead {
			err = r.dropSnapshot(ctx, s.Name)
		}
		switch {
		case err != nil:
			r.opts.Log.Warn("a leftover snapshot stays", "snapshot", s.Name, "error", err)
		case dead:
			r.opts.Log.Info("deleted a snapshot left by a run that died", "snapshot", s.Name)
		default:
			r.opts.Log.Info("a snapshot of another run is on the cluster", "snapshot", s.Name)
		}
	}
}
