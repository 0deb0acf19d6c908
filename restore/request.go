package restore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
	"hbackup/storage/lease"
)

// job gives the record of the request; cluster is the source.
func (r *run) job(cluster hbackup.ClusterName) catalog.Job {
	backup, _ := r.req.Image.ID.Backup() // the request was validated
	return catalog.Job{Request: r.req.ID, Verb: "restore", Backup: backup, Cluster: cluster, Tables: []hbackup.TableName{r.req.Image.Table},
		Image: r.req.Image.ID, TargetCluster: r.target.Name, TargetTable: r.req.table(), Host: r.opts.Host, Writer: r.opts.Writer}
}

// isFinished looks for the end of the request. The location's folder is that of
// one source cluster, so the record needs no check of that.
func (r *run) isFinished(ctx context.Context) (bool, error) {
	recorded, err := catalog.ReadJob(ctx, r.store, r.req.ID)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := catalog.SameRequest(r.store, recorded, r.job(recorded.Cluster)); err != nil {
		return false, err
	}
	_, err = catalog.ReadJobDone(ctx, r.store, r.req.ID)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}

// finished is isFinished, and when the end was reached drops the snapshot that a
// run killed right afterwards has left.
func (r *run) finished(ctx context.Context) (bool, error) {
	if done, err := r.isFinished(ctx); err != nil || !done {
		return false, err
	}
	if err := r.dropSnapshot(ctx); err != nil {
		return true, err
	}
	exists, err := r.tableExists(ctx)
	if err == nil && !exists {
		r.note("the table was restored by this request, but is not there any more; to restore it again use another request id")
	}
	return true, err
}

// record binds the request id to this restore and takes its lease. A location
// that takes no writes can still be restored from.
func (r *run) record(ctx context.Context) error {
	j := r.job(r.image.Cluster)
	now, err := r.store.ServerTime(ctx)
	if err == nil {
		j.Created = now.UTC()
		_, _, err = catalog.CreateJob(ctx, r.store, j)
	}
	if hbackup.IsKind(err, hbackup.KindReadOnly, hbackup.KindDenied) {
		r.note("the location takes no writes, so the restore is not recorded there: running it again once it is done is not recognised")
		return nil
	}
	if err != nil {
		return err
	}
	return r.takeLease(ctx)
}

// takeLease claims the request. After a kill the dead process still holds it: a
// holder that does not renew is waited for, one that does is at work.
func (r *run) takeLease(ctx context.Context) error {
	name := LeaseName(r.req.ID)
	owner := fmt.Sprintf("%s, request %s", r.opts.Host, r.req.ID)
	var first lease.Holder
	for {
		var err error
		r.lease, err = lease.Acquire(ctx, r.store, name, owner, r.opts.LeaseTTL)
		if err == nil {
			return nil
		}
		if !hbackup.IsKind(err, hbackup.KindBusy) {
			return hbackup.E("start restore", string(r.req.ID), hbackup.KindOther, err)
		}
		holder, found, rerr := lease.Read(ctx, r.store, name)
		now, terr := r.store.ServerTime(ctx)
		if rerr != nil || terr != nil || !found || first.Generation > 0 && holder.Generation != first.Generation {
			return hbackup.E("start restore", string(r.req.ID), hbackup.KindBusy, err).
				WithHint("the same request is being worked on; wait for it, or use another request id")
		}
		first = holder
		r.opts.Log.Info("waiting to see whether an earlier try of this request is still alive", "holder", holder.Owner, "until", hbackup.FormatTime(holder.Expires))
		if err := r.opts.wait(ctx, max(holder.Expires.Sub(now), 0)+time.Second); err != nil {
			return err
		}
	}
}

// others gives the snapshots that other restores have left on the cluster: those
// whose request is done, which nobody needs, and the rest.
func (r *run) others(ctx context.Context) (done, open []string, err error) {
	entries, err := r.readDir(ctx, snapshot.SnapshotDir(r.target.Root, ""))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		request, ok := ParseSnapshotName(e.Name)
		if !ok || e.Name == r.id.snapshot() {
			continue
		}
		if r.isDone(ctx, request, e.Name) {
			done = append(done, e.Name)
		} else {
			open = append(open, e.Name)
		}
	}
	return done, open, nil
}

// isDone reports whether this location says that the restore which made the
// snapshot has reached its end.
func (r *run) isDone(ctx context.Context, request hbackup.RequestID, name string) bool {
	j, err := catalog.ReadJob(ctx, r.store, request)
	if err != nil || j.Verb != "restore" || ofJob(j).snapshot() != name {
		return false
	}
	_, err = catalog.ReadJobDone(ctx, r.store, request)
	return err == nil
}

// dropFinished drops the snapshots of restores that are done, and notes the
// others: they may be at work, here or anywhere.
func (r *run) dropFinished(ctx context.Context) {
	done, open, err := r.others(ctx)
	if err != nil {
		r.opts.Log.Warn("snapshots of other restores could not be looked for", "error", err)
		return
	}
	for _, name := range done {
		if err := r.dropNamed(ctx, name); err != nil {
			r.opts.Log.Warn("the snapshot of a finished restore is still on the cluster", "snapshot", name, "error", err)
		}
	}
	r.noteOthers(open)
}

func (r *run) noteOthers(open []string) {
	if len(open) > 0 {
		r.note("snapshots of other restores are on the cluster (%s); hbackup check says whether they are still needed", strings.Join(open, ", "))
	}
}
