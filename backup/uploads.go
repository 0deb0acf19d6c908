package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/lease"
)

// chooseCommitter picks the committer and says which it is. It writes nothing.
func (r *run) chooseCommitter(ctx context.Context) error {
	choice, err := committer.Choose(ctx, r.location, r.opts.Committer)
	if err != nil {
		return err
	}
	r.choice = choice
	if choice.Unsure() {
		r.opts.Log.Warn("files go to their final names at once, but if the bucket is versioned or locked, what a failed backup leaves cannot be deleted",
			"committer", choice.Protocol, "because", choice.Reason, "hint", "grant the right, or set committer of the location to direct or deferred")
		return nil
	}
	r.opts.Log.Info("committer", "protocol", choice.Protocol, "because", choice.Reason)
	return nil
}

// begin starts an image.
func (r *run) begin(t hbackup.TableName, id hbackup.ImageID) (*committer.Image, error) {
	c, err := r.choice.For(r.store, catalog.UploadsFolder(r.req.ID, id))
	if err != nil {
		return nil, err
	}
	return c.Begin(func(ctx context.Context) error { return r.mayReplace(ctx, t, id) }), nil
}

// publish makes the files of an image visible. Where they were held until now it
// is the last moment to find that they should not be.
func (r *run) publish(ctx context.Context, t hbackup.TableName, image *committer.Image) error {
	if r.choice.Protocol == committer.ProtocolDeferred {
		if err := r.mayCommit(ctx, r.claims.of(t)); err != nil {
			return err
		}
	}
	return image.Publish(ctx)
}

// endCommitted gives up what is left of tries of an image that is committed.
func (r *run) endCommitted(ctx context.Context, t hbackup.TableName, id hbackup.ImageID) error {
	image, err := r.begin(t, id)
	if err != nil {
		return err
	}
	if _, err := image.TakeOver(ctx, r.settled); err != nil {
		return err
	}
	r.end(ctx, t, image, nil)
	return nil
}

// end gives up what an image leaves. A run that was interrupted, or has lost its
// lease, leaves it to the one that goes on.
func (r *run) end(ctx context.Context, t hbackup.TableName, image *committer.Image, failure error) {
	if r.lease.Check() != nil || failure != nil && ctx.Err() != nil {
		return
	}
	ectx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := image.End(ectx); err != nil {
		r.opts.Log.Warn("uploads of a table are left; a later backup drops them", "table", t, "error", err)
	}
}

// dropUploads drops what runs that died have left of their uploads; of this run,
// which has been tried before then, only what cannot be used. Failing here does not
// fail the run.
func (r *run) dropUploads(ctx context.Context) {
	if _, holds := storage.HolderOf(r.store); !holds {
		return
	}
	open, err := catalog.OpenUploads(ctx, r.store)
	if err != nil {
		r.opts.Log.Warn("leftover uploads cannot be looked for", "error", err)
		return
	}
	byRun := map[hbackup.BackupID][]committer.Leftover{}
	for _, folder := range slices.Sorted(maps.Keys(open)) {
		if backup, err := open[folder].Backup(); err == nil {
			byRun[backup] = append(byRun[backup], committer.Leftover{Folder: folder,
				Resume: backup == r.job.Backup && r.choice.Protocol == committer.ProtocolDeferred})
		}
	}
	var left []committer.Leftover
	mine := []hbackup.BackupID{r.job.Backup}
	for backup, of := range byRun {
		if backup != r.job.Backup {
			release, err := r.claim(ctx, backup)
			if err != nil {
				if !hbackup.IsKind(err, hbackup.KindBusy) {
					r.opts.Log.Warn("uploads of a run that died are left", "backup", backup, "error", err)
				}
				continue
			}
			defer release()
			mine = append(mine, backup)
		}
		left = append(left, of...)
	}
	done, err := committer.Tidy(ctx, r.store, left, func(ctx context.Context) (bool, error) { return catalog.Alone(ctx, r.store, mine...) })
	r.settled = done.Accounted
	if err != nil {
		r.opts.Log.Warn("uploads of a run that died are left", "error", err)
	}
	if done.Dropped > 0 {
		r.opts.Log.Info("dropped uploads left by runs that died", "uploads", done.Dropped)
	}
}

// claim takes the lease of a run that has died, so that nobody goes on with it
// meanwhile; a run that is alive is KindBusy.
func (r *run) claim(ctx context.Context, backup hbackup.BackupID) (release func(), err error) {
	l, err := lease.Acquire(ctx, r.store, catalog.RunLease(backup), fmt.Sprintf("%s, tidying up", r.opts.Host), r.opts.LeaseTTL)
	if err != nil {
		return nil, err
	}
	_, stop := l.Keep(ctx)
	return func() {
		stop()
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if err := l.Release(rctx); err != nil {
			r.opts.Log.Warn("the lease of a run that died was not given back; it ends by itself", "backup", backup, "error", err)
		}
	}, nil
}
