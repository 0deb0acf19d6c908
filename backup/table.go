package backup

import (
	"context"
	"path"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// cleanupTime bounds what is still done for a table after its context has ended.
const cleanupTime = 30 * time.Second

// table backs up one table and gives its line in the run's record.
func (r *run) table(ctx context.Context, t hbackup.TableName, id hbackup.ImageID) (line catalog.TableRun, err error) {
	line = catalog.TableRun{Table: t}
	im, err := catalog.ReadImage(ctx, r.store, t, id)
	switch {
	case err == nil: // committed by an earlier try
		name := snapshotName(r.req.Cluster, id)
		if err := r.dropSnapshot(ctx, name); err != nil {
			r.opts.Log.Warn("a snapshot of ours is still on the cluster", "snapshot", name, "error", err)
		}
		return lineOf(im, done{}), r.endCommitted(ctx, t, id)
	case !hbackup.IsKind(err, hbackup.KindNotFound):
		return line, err
	}

	ctx, free, err := r.claimTable(ctx, t)
	if err != nil {
		return line, err
	}
	defer free()
	r.opts.Reporter.Stage(t, "snapshot")
	if r.req.FromSnapshot != "" {
		return r.image(ctx, t, id, r.source)
	}
	name := snapshotName(r.req.Cluster, id)
	taken, err := r.takeSnapshot(ctx, name, t)
	if err != nil {
		return line, err
	}
	// From here on the snapshot is dropped whatever happens, unless the process
	// dies, or the lease is lost: then it belongs to whoever goes on with this run,
	// and if nobody does the next run finds it by its name.
	defer func() {
		if r.lease.Check() != nil {
			r.opts.Log.Warn("a snapshot stays for the process that has taken this run over", "snapshot", name)
			return
		}
		r.opts.Reporter.Stage(t, "delete snapshot")
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if derr := r.dropSnapshot(dctx, name); derr != nil {
			r.opts.Log.Warn("a snapshot of ours is still on the cluster", "snapshot", name, "error", derr)
		}
		failpoint.Hit(StepSnapshotDeleted)
	}()
	failpoint.Hit(StepSnapshotTaken)
	return r.image(ctx, t, id, taken)
}

// image makes and commits the image of a snapshot.
func (r *run) image(ctx context.Context, t hbackup.TableName, id hbackup.ImageID, taken rpc.SnapshotInfo) (line catalog.TableRun, err error) {
	line = catalog.TableRun{Table: t}
	r.opts.Reporter.Stage(t, "plan")
	m, err := snapshot.Read(ctx, r.src.FS, r.src.Root, taken.Name)
	if err != nil {
		return line, r.explainMissing(ctx, err, taken)
	}
	if m.Description.Table != t {
		return line, hbackup.Errorf("read snapshot", taken.Name, hbackup.KindConflict, "it is a snapshot of %s, not of %s", m.Description.Table, t)
	}
	finished, err := r.finishedAt(ctx, m)
	if err != nil {
		return line, r.explainMissing(ctx, err, taken)
	}
	needs, err := needsOf(m)
	if err != nil {
		return line, err
	}
	mob := newMOBFiles(m, needs)
	p, err := r.planTable(ctx, t, needs, mob)
	if err != nil {
		return line, err
	}
	failpoint.Hit(StepPlanned)

	image, err := r.begin(t, id)
	if err != nil {
		return line, err
	}
	defer func() { r.end(ctx, t, image, err) }()
	earlier, err := image.TakeOver(ctx, r.settled)
	if err != nil {
		return line, err
	}
	p.takeOver(earlier, mob.concerns)
	r.opts.Reporter.Stage(t, "copy")
	journal := r.openJournal(ctx, id)
	defer func() { r.closeJournal(ctx, journal, err) }()
	files, done, err := r.files(ctx, t, image, mob, journal, p)
	if err != nil {
		return line, r.explainMissing(ctx, err, taken)
	}
	if err := mob.verdict(t); err != nil {
		return line, err
	}
	if mob.unread > 0 {
		r.opts.Log.Warn("some HFiles of MOB families do not say which MOB files they need; if the table was cloned or restored, big values may be missing from this image", "table", t, "files", mob.unread)
	}
	failpoint.Hit(StepFilesCopied)

	// A snapshot that somebody deleted meanwhile no longer held its files: what
	// was copied cannot be vouched for.
	if err := r.stillThere(ctx, taken); err != nil {
		return line, err
	}

	r.opts.Reporter.Stage(t, "commit")
	im, err := r.describe(ctx, t, id, m, finished, files)
	if err != nil {
		return line, err
	}
	im.Parents = p.parents
	info, manifest, err := snapshotFiles(m, id)
	if err != nil {
		return line, err
	}
	im.Caveat = r.caveat(t, m)
	im.Snapshot = []catalog.SnapshotFile{
		{Name: catalog.DataManifestFile, Size: int64(len(manifest)), Digest: storage.DigestOf(manifest)},
		{Name: catalog.SnapshotInfoFile, Size: int64(len(info)), Digest: storage.DigestOf(info)},
	}
	if err := r.publish(ctx, t, image); err != nil {
		return line, err
	}
	err = image.PutSnapshotFiles(ctx,
		committer.SnapshotFile{Key: catalog.SnapshotKey(id, catalog.DataManifestFile), Data: manifest},
		committer.SnapshotFile{Key: catalog.SnapshotKey(id, catalog.SnapshotInfoFile), Data: info})
	if err != nil {
		return line, err
	}
	failpoint.Hit(StepSnapshotWritten)
	im.Fence = r.claims.of(t).Holder().Generation
	encoded, err := im.Encode()
	if err != nil {
		return line, hbackup.E("encode image", string(id), hbackup.KindOther, err)
	}
	if err := r.mayCommit(ctx, r.claims.of(t)); err != nil {
		return line, err
	}
	if err := image.Commit(ctx, catalog.ImageKey(t, id), encoded); err != nil {
		return line, err
	}
	failpoint.Hit(StepImageCommitted)
	return lineOf(im, done), nil
}

// mayReplace fails when what an earlier try of this image has left in the location
// may be in use: another process has the run, or the image is committed.
func (r *run) mayReplace(ctx context.Context, t hbackup.TableName, id hbackup.ImageID) error {
	key := catalog.ImageKey(t, id)
	committed, err := storage.Exists(ctx, r.store, key)
	if err != nil {
		return hbackup.E("look for image", r.store.Location().At(key), hbackup.KindOther, err)
	}
	if committed {
		return hbackup.Errorf("back up", t.String(), hbackup.KindConflict, "another process has committed the image %s", id).
			WithHint("run the same request again: it goes on from there")
	}
	return r.lease.Check()
}

// snapshotFiles gives HBase's own files as the location keeps them: the manifest
// as HBase wrote it, the description under the image's name and without a time
// to live, so that HBase's tools never take an image for expired.
func snapshotFiles(m *snapshot.Manifest, id hbackup.ImageID) (info, manifest []byte, err error) {
	if info, err = m.Description.As(string(id), 0).Encode(); err != nil {
		return nil, nil, err
	}
	if m.Raw != nil {
		return info, m.Raw, nil
	}
	manifest, err = snapshot.EncodeManifest(m)
	return info, manifest, err
}

// describe fills in the image's header.
func (r *run) describe(ctx context.Context, t hbackup.TableName, id hbackup.ImageID, m *snapshot.Manifest, finished time.Time, files []catalog.File) (*catalog.Image, error) {
	all, err := r.src.Master.Namespaces(ctx)
	if err != nil {
		return nil, hbackup.E("read name space", t.Namespace, hbackup.KindOther, err)
	}
	var ns map[string]string
	for _, n := range all {
		if n.Name == t.Namespace {
			ns = n.Config
		}
	}
	im := &catalog.Image{Files: files, Header: catalog.Header{
		ID: id, Backup: r.job.Backup, Cluster: r.req.Cluster, ClusterID: r.clusterID, HBaseVersion: r.version,
		Table: t, Disabled: m.Description.Type == snapshot.TypeDisabled, Namespace: ns, Schema: catalog.SchemaOf(&m.Schema),
		SnapshotStarted: m.Description.Created, SnapshotFinished: finished, SourceSnapshot: m.Description.Name,
		Writer: r.opts.Writer,
	}}
	im.Totals = catalog.Totals{Regions: len(m.Regions), Files: len(files)}
	for _, f := range files {
		im.Totals.Bytes += f.Size
		im.Totals.Cells += max(f.Cells, 0)
	}
	im.References = catalog.ReferencesOf(files, r.nameOf)
	return im, nil
}

// caveat asks whether a restore will take the image. When it will not, the image
// is kept all the same, as HBase's own tools can import it, but nobody shall learn
// of it only when the table is gone.
func (r *run) caveat(t hbackup.TableName, m *snapshot.Manifest) *catalog.Failure {
	err := snapshot.Composable(m)
	if err != nil {
		r.opts.Log.Warn("the image of the table is whole, but cannot be restored by hbackup as it is", "table", t, "error", err, "hint", hbackup.HintOf(err))
	}
	return catalog.NewFailure(err)
}

// finishedAt bounds the moment of the last region's cut: the manifest is written
// after all of them. The name node's clock and the master's may differ.
func (r *run) finishedAt(ctx context.Context, m *snapshot.Manifest) (time.Time, error) {
	info, err := r.src.FS.Stat(ctx, path.Join(snapshot.SnapshotDir(r.src.Root, m.Description.Name), catalog.DataManifestFile))
	if err != nil {
		return time.Time{}, err
	}
	if info.Modified.After(m.Description.Created) {
		return info.Modified.UTC(), nil
	}
	return m.Description.Created, nil
}

// explainMissing gives the real reason when a file is gone because the snapshot is.
func (r *run) explainMissing(ctx context.Context, err error, taken rpc.SnapshotInfo) error {
	if !hbackup.IsKind(err, hbackup.KindNotFound, hbackup.KindIncomplete) {
		return err
	}
	if gone := r.stillThere(ctx, taken); gone != nil && hbackup.IsKind(gone, hbackup.KindIncomplete) {
		r.opts.Log.Warn("a file of a snapshot that is gone", "table", taken.Table, "snapshot", taken.Name, "error", err)
		return gone
	}
	return err
}

func lineOf(im *catalog.Image, d done) catalog.TableRun {
	return catalog.TableRun{Table: im.Table, Image: im.ID, SnapshotStarted: im.SnapshotStarted, SnapshotFinished: im.SnapshotFinished,
		Totals: im.Totals, CopiedFiles: d.copied, CopiedBytes: d.copiedBytes, ReplacedFiles: d.replaced, References: im.References, Caveat: im.Caveat}
}
