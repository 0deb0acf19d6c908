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
		if err := r.shots.acquire(ctx); err != nil {
			return info, err
		}
		defer r.shots.release()
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

// validateSource checks the name of a snapshot that somebody has taken.
func (q Request) validateSource() error {
	fail := func(format string, args ...any) *hbackup.Error {
		return hbackup.Errorf("back up", q.FromSnapshot, hbackup.KindUsage, format, args...)
	}
	if len(q.Tables) > 0 || q.Selection != nil {
		return fail("a snapshot is given and tables are chosen as well")
	}
	if _, _, ours := parseSnapshotName(q.FromSnapshot); ours {
		return fail("this snapshot is hbackup's own").WithHint("it belongs to a run, which deletes it: run the request of that run again")
	}
	return nil
}

// lookUpSource finds the snapshot of the request and its table, which may be gone by
// now.
func (r *run) lookUpSource(ctx context.Context) error {
	name := r.req.FromSnapshot
	info, found, err := r.findSnapshot(ctx, name)
	switch {
	case err != nil:
		return err
	case !found:
		// A try before may have come to the image, and somebody has deleted the
		// snapshot since.
		job, err := catalog.ReadJob(ctx, r.store, r.req.ID)
		if err == nil && job.FromSnapshot == name && len(job.Tables) == 1 {
			r.source, r.tables = rpc.SnapshotInfo{Name: name, Table: job.Tables[0]}, job.Tables
			return nil
		}
		return hbackup.Errorf("look up snapshot", name, hbackup.KindNotFound, "the cluster does not list it").
			WithHint("check the name; HBase shows a snapshot to its owner and to administrators only")
	case info.Table.IsSystem():
		return hbackup.Errorf("look up snapshot", name, hbackup.KindUsage, "it is one of %s: tables of the name space %q are HBase's own and cannot be restored elsewhere", info.Table, hbackup.SystemNamespace)
	}
	if err := info.Table.Validate(); err != nil {
		return hbackup.E("look up snapshot", name, hbackup.KindUnsupported, err)
	}
	r.source, r.tables = info, []hbackup.TableName{info.Table}
	return nil
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
			WithHint("somebody, or a time to live shorter than the copy, has deleted it; stop that and run the backup again")
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
