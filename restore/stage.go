package restore

import (
	"context"
	"errors"
	"path"

	"hbackup"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/snapshot"
	"hbackup/internal/failpoint"
)

// errTaken says that somebody else is making the same snapshot right now.
var errTaken = errors.New("another process has just made it")

// putSnapshot writes the two files of the plan's snapshot, data.manifest first
// and .snapshotinfo at once after it: until both are there the cluster's
// cleaners delete nothing at all.
func (r *run) putSnapshot(ctx context.Context, p *plan) error {
	dir := r.snapshotDir()
	if err := r.target.FS.MkdirAll(ctx, dir); err != nil {
		return hbackup.E("make snapshot directory", r.target.FS.URI()+dir, hbackup.KindOther, err)
	}
	failpoint.Hit(StepDirectoryMade)
	if err := r.putSmall(ctx, path.Join(dir, snapshot.ManifestFile), p.manifest); err != nil {
		return err
	}
	failpoint.Hit(StepManifestWritten)
	if err := r.putSmall(ctx, path.Join(dir, snapshot.InfoFile), p.info); err != nil {
		return err
	}
	failpoint.Hit(StepSnapshotWritten)
	return nil
}

func (r *run) putSmall(ctx context.Context, at string, data []byte) error {
	const op = "write snapshot file"
	w, err := r.target.FS.Create(ctx, at)
	if hbackup.IsKind(err, hbackup.KindExists) {
		return hbackup.E(op, r.target.FS.URI()+at, hbackup.KindBusy, errTaken).
			WithHint("the same request is being worked on; wait for it, or use another request id")
	}
	if err != nil {
		return hbackup.E(op, r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	if _, err := w.Write(data); err != nil {
		return hbackup.E(op, r.target.FS.URI()+at, hbackup.KindOther, errors.Join(err, w.Abort()))
	}
	if err := w.Close(); err != nil {
		return hbackup.E(op, r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	return nil
}

// dropSnapshot removes the snapshot of this restore, whole or in parts. The
// master does it when it can, so that it knows; the directory is looked for
// afterwards in any case, as the master does not see one that is incomplete.
func (r *run) dropSnapshot(ctx context.Context) error {
	return r.dropNamed(ctx, r.id.snapshot())
}

func (r *run) dropNamed(ctx context.Context, name string) error {
	const op = "delete snapshot"
	dir := snapshot.SnapshotDir(r.target.Root, name)
	_, err := r.target.FS.Stat(ctx, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	rpcErr := r.target.Master.DeleteSnapshot(ctx, name)
	_, err = r.target.FS.Stat(ctx, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	if err := r.target.FS.RemoveAll(ctx, dir); err != nil {
		return hbackup.E(op, r.target.FS.URI()+dir, hbackup.KindOther, errors.Join(err, rpcErr)).
			WithHint("while an incomplete snapshot directory is there the cluster's cleaners delete nothing; remove it with hbackup check, or run this again")
	}
	return nil
}

// dropStage removes the files of an attempt whose snapshot is gone and of which
// no clone was ever ordered. HBase's cleaners would do it too, some minutes
// later.
func (r *run) dropStage(ctx context.Context, p *plan) error {
	dir := path.Join(r.target.Root, p.stage())
	if err := r.target.FS.RemoveAll(ctx, dir); err != nil {
		return hbackup.E("remove staged files", r.target.FS.URI()+dir, hbackup.KindOther, err)
	}
	return nil
}

// readDir lists a directory; one that is missing is empty.
func (r *run) readDir(ctx context.Context, dir string) ([]rootfs.Info, error) {
	entries, err := r.target.FS.ReadDir(ctx, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, hbackup.E("list", r.target.FS.URI()+dir, hbackup.KindOther, err)
	}
	return entries, nil
}
