package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/engine"
	"hbackup/hbase/rpc"
	"hbackup/internal/failpoint"
	"hbackup/storage"
	"hbackup/storage/lease"
	"hbackup/storage/prefixed"
)

// Result is what a run came to.
type Result struct {
	catalog.Run
	AlreadyDone bool // the request had reached its end before
}

// run is one run at work.
type run struct {
	req       Request
	src       Source
	opts      Options
	location  storage.Store
	marker    catalog.Marker
	store     storage.Store // the cluster's folder in the location
	earlier   []catalog.Place
	lenders   []*lender           // earlier locations whose files may be named
	tables    []hbackup.TableName // what is to be backed up, before the job is recorded
	gone      []hbackup.TableName // what the selection's last run had and this one has not
	job       catalog.Job
	lease     *lease.Lease
	clusterID string
	version   string
	choice    committer.Choice
	settled   committer.Accounted // uploads of earlier tries of this run
	slots     slots               // for files
	shots     slots               // for snapshots
	source    rpc.SnapshotInfo    // with FromSnapshot
	claims    claims
	again     bool        // the request was recorded before: this is not its first try
	journaled atomic.Bool // copied files were put on record
}

// Run backs up the tables of the request. When every table fails the error says
// why and no backup is recorded; when some do, the result is partial and the
// error nil: the tables' lines name the causes. All that can be refused is
// refused before anything is written.
func Run(ctx context.Context, req Request, src Source, dst Target, opts Options) (Result, error) {
	opts = opts.withDefaults()
	failpoint.Hit(StepStart)
	if err := req.validate(); err != nil {
		return Result{}, err
	}
	r := &run{req: req, src: src, opts: opts, slots: make(slots, opts.Files), shots: make(slots, opts.Snapshots), location: dst.Location, earlier: dst.Earlier,
		store: prefixed.New(dst.Location, string(req.Cluster))}
	if _, err := catalog.Examine(ctx, dst.Location); err != nil && !(opts.Init && hbackup.IsKind(err, hbackup.KindRefused)) {
		return Result{}, err
	}
	if done, err := r.finished(ctx); err != nil || done != nil {
		return Result{Run: deref(done), AlreadyDone: done != nil}, err
	}
	if err := r.lookAtCluster(ctx); err != nil {
		return Result{}, err
	}
	if err := r.chooseCommitter(ctx); err != nil {
		return Result{}, err
	}
	var err error
	if r.marker, err = catalog.EnsureMarker(ctx, dst.Location, opts.Writer, opts.Init); err != nil {
		return Result{}, err
	}
	if opts.Reference == ReferenceAny {
		r.lenders = lendersOf(dst.Earlier, r.marker.ID, opts.Log)
	}
	if err := r.rehearse(ctx); err != nil {
		return Result{}, err
	}
	if err := r.record(ctx); err != nil {
		return Result{}, err
	}
	failpoint.Hit(StepJobRecorded)
	r.compareWithLast(ctx)
	if err := r.takeLease(ctx); err != nil {
		return Result{}, err
	}
	kept, stop := r.lease.Keep(ctx)
	result, err := r.workOnce(kept)
	stop()
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if rerr := r.lease.Release(rctx); rerr != nil {
		opts.Log.Warn("the run's lease was not given back; it ends by itself", "backup", r.job.Backup, "error", rerr)
	}
	return result, err
}

// lookAgain is how often a run that waits for another's lease looks whether the
// other is alive, or done.
const lookAgain = 2 * time.Second

// takeLease claims the run. After a kill the dead process still holds it: a
// holder that does not renew is waited for, one that does is at work.
func (r *run) takeLease(ctx context.Context) error {
	name := catalog.RunLease(r.job.Backup)
	var first lease.Holder
	for {
		var err error
		r.lease, err = lease.Acquire(ctx, r.store, name, r.owner(), r.opts.LeaseTTL)
		if err == nil {
			return nil
		}
		if !hbackup.IsKind(err, hbackup.KindBusy) {
			return hbackup.E("start backup", string(r.job.Backup), hbackup.KindOther, err)
		}
		holder, found, rerr := lease.Read(ctx, r.store, name)
		now, terr := r.store.ServerTime(ctx)
		if rerr == nil && terr == nil && found && !holder.HeldAt(now) {
			continue // it ended in this moment
		}
		if rerr != nil || terr != nil || !found || first.Generation > 0 && holder.Generation != first.Generation {
			return hbackup.E("start backup", string(r.job.Backup), hbackup.KindBusy, err).
				WithHint("the same request is being worked on; wait for it, or use another request id")
		}
		if first.Generation == 0 {
			r.opts.Log.Info("waiting to see whether an earlier try of this request is still alive", "holder", holder.Owner, "until", hbackup.FormatTime(holder.Expires))
		}
		first = holder
		if err := wait(ctx, min(max(holder.Expires.Sub(now), 0)+time.Second, lookAgain)); err != nil {
			return err
		}
	}
}

// owner says in leases who this is.
func (r *run) owner() string { return fmt.Sprintf("%s, request %s", r.opts.Host, r.req.ID) }

func deref(r *catalog.Run) catalog.Run {
	if r == nil {
		return catalog.Run{}
	}
	return *r
}

func (q Request) validate() error {
	for _, err := range []error{q.ID.Validate(), q.Cluster.Validate()} {
		if err != nil {
			return hbackup.E("back up", string(q.Cluster), hbackup.KindUsage, err)
		}
	}
	if q.FromSnapshot != "" {
		return q.validateSource()
	}
	if q.Selection != nil {
		if len(q.Tables) > 0 {
			return hbackup.Errorf("back up", string(q.Cluster), hbackup.KindUsage, "tables are named and a selection is given as well")
		}
		if err := q.Selection.Validate(); err != nil {
			return hbackup.E("back up", string(q.Cluster), hbackup.KindUsage, err)
		}
		return nil
	}
	if len(q.Tables) == 0 {
		return hbackup.Errorf("back up", string(q.Cluster), hbackup.KindUsage, "no table is named")
	}
	seen := map[hbackup.TableName]bool{}
	for _, t := range q.Tables {
		if err := t.Validate(); err != nil {
			return hbackup.E("back up", string(q.Cluster), hbackup.KindUsage, err)
		}
		if t.IsSystem() {
			return hbackup.Errorf("back up", t.String(), hbackup.KindUsage, "tables of the name space %q are HBase's own and cannot be restored elsewhere", hbackup.SystemNamespace).
				WithHint("leave it out: a restore makes what HBase's own tables must say of a table anew")
		}
		if seen[t] {
			return hbackup.Errorf("back up", t.String(), hbackup.KindUsage, "the table is named twice")
		}
		seen[t] = true
	}
	return nil
}

// finished looks for the end of the request, which needs no cluster.
func (r *run) finished(ctx context.Context) (*catalog.Run, error) {
	job, err := catalog.ReadJob(ctx, r.store, r.req.ID)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec, err := catalog.ReadRun(ctx, r.store, job.Backup)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.sameAs(job); err != nil {
		return nil, err
	}
	return &rec, catalog.FinishJob(ctx, r.store, catalog.JobDone{Request: r.req.ID, Finished: rec.Finished, State: rec.State})
}

// sameAs fails when the request id stands for another request.
func (r *run) sameAs(job catalog.Job) error {
	wanted := catalog.Job{Request: r.req.ID, Verb: "backup", Cluster: r.req.Cluster, Tables: r.req.Tables, Selection: r.req.Selection, FromSnapshot: r.req.FromSnapshot}
	if r.req.FromSnapshot != "" {
		wanted.Tables = job.Tables // those of the snapshot
	}
	return catalog.SameRequest(r.store, job, wanted)
}

// lookUpTables names every table that is not there; a wrong name stops the whole
// backup before it begins.
func (r *run) lookUpTables(ctx context.Context) error {
	var missing []string
	var first error
	for _, t := range r.req.Tables {
		_, err := r.src.Master.TableState(ctx, t)
		if hbackup.IsKind(err, hbackup.KindNotFound) {
			missing = append(missing, t.String())
			if first == nil {
				first = err
			}
			continue
		}
		if err != nil {
			return hbackup.E("look up table", t.String(), hbackup.KindOther, err)
		}
	}
	if missing == nil {
		return nil
	}
	return hbackup.E("look up table", strings.Join(missing, ", "), hbackup.KindOther, first).
		WithHint("check the names and their name spaces; no table was backed up")
}

// lookAtCluster finds what is wrong with the request or the cluster while
// nothing has been written yet.
func (r *run) lookAtCluster(ctx context.Context) error {
	version, err := r.src.Master.Version(ctx)
	if err != nil {
		return hbackup.E("reach cluster", string(r.req.Cluster), hbackup.KindOther, err)
	}
	r.clusterID, r.version = r.src.Master.ClusterID(), version.String()
	switch {
	case r.req.FromSnapshot != "":
		err = r.lookUpSource(ctx)
	case r.req.Selection != nil:
		err = r.selectTables(ctx)
	default:
		r.tables = r.req.Tables
		err = r.lookUpTables(ctx)
	}
	if err != nil {
		return err
	}
	root := r.src.FS.URI() + r.src.Root
	info, err := r.src.FS.Stat(ctx, r.src.Root)
	if hbackup.IsKind(err, hbackup.KindNotFound) || err == nil && !info.Dir {
		return hbackup.Errorf("look into HBase's root directory", root, hbackup.KindUsage, "there is no such directory").
			WithHint("set clusters.%s.root to the value of hbase.rootdir", r.req.Cluster)
	}
	if err != nil {
		return hbackup.E("look into HBase's root directory", root, hbackup.KindOther, err)
	}
	return nil
}

// record binds the request id to this run, or finds the run it is bound to. The
// store's clock gives the id, so that runs of several hosts sort right.
func (r *run) record(ctx context.Context) error {
	now, err := r.store.ServerTime(ctx)
	if err != nil {
		return hbackup.E("ask the time of", string(r.store.Location()), hbackup.KindOther, err)
	}
	r.job, r.again, err = catalog.CreateJob(ctx, r.store, catalog.Job{
		Request: r.req.ID, Verb: "backup", Backup: hbackup.NewBackupID(now), Cluster: r.req.Cluster, Tables: r.tables, Selection: r.req.Selection, FromSnapshot: r.req.FromSnapshot,
		Created: now.UTC(), Host: r.opts.Host, Writer: r.opts.Writer,
	})
	return err
}

// workOnce does the work unless another process has done it while this one
// waited for the lease: what is recorded of a run stays as it is.
func (r *run) workOnce(ctx context.Context) (Result, error) {
	done, err := r.finished(ctx)
	if err != nil || done != nil {
		return Result{Run: deref(done), AlreadyDone: done != nil}, err
	}
	return r.work(ctx)
}

// work does the tables and commits the run.
func (r *run) work(ctx context.Context) (Result, error) {
	failpoint.Hit(StepLeaseTaken)
	r.dropLeftovers(ctx)
	r.dropUploads(ctx)
	lines := make([]catalog.TableRun, len(r.job.Tables))
	errs := make([]error, len(r.job.Tables))
	if err := r.allTables(ctx, lines, errs); err != nil {
		return Result{}, err // cancelled, or the lease was lost
	}
	return r.commit(ctx, lines, errs)
}

// allTables works on the tables, each of which gets its line, and its error when it
// failed: one bad table does not stop the others. Those that another run works on
// come last, and are waited for.
func (r *run) allTables(ctx context.Context, lines []catalog.TableRun, errs []error) error {
	left := make([]int, len(lines))
	for i := range left {
		left[i] = i
	}
	patience := patience{most: r.opts.TableWait}
	for {
		if err := r.someTables(ctx, left, lines, errs); err != nil {
			return err
		}
		var next time.Duration
		left, next = busyTables(left, errs)
		if len(left) == 0 || patience.over() {
			for _, i := range left {
				r.opts.Reporter.Stage(r.job.Tables[i], "failed")
			}
			return nil
		}
		if err := wait(ctx, patience.bound(next)); err != nil {
			return err
		}
	}
}

// someTables works on the tables of the numbers.
func (r *run) someTables(ctx context.Context, numbers []int, lines []catalog.TableRun, errs []error) error {
	return engine.Local(ctx, r.opts.Tables, engine.Each(numbers), func(ctx context.Context, i int) error {
		t := r.job.Tables[i]
		lines[i], errs[i] = r.table(ctx, t, r.job.Backup.Image(i))
		if errs[i] != nil {
			lines[i] = catalog.TableRun{Table: t, Failure: catalog.NewFailure(errs[i])}
			if !errors.As(errs[i], new(busyTable)) { // which may be had in a while
				r.opts.Reporter.Stage(t, "failed")
			}
			return nil
		}
		r.opts.Reporter.Stage(t, "done")
		return nil
	})
}

// commit writes the run's record when there is an image to show.
func (r *run) commit(ctx context.Context, lines []catalog.TableRun, errs []error) (Result, error) {
	rec := catalog.Run{ID: r.job.Backup, Request: r.req.ID, Cluster: r.req.Cluster, ClusterID: r.clusterID, HBaseVersion: r.version,
		State: catalog.StateComplete, Started: r.job.Created, Host: r.opts.Host, Writer: r.opts.Writer, Tables: lines, Selection: r.job.Selection, Gone: r.gone,
		Fence: r.lease.Holder().Generation, Committer: string(r.choice.Protocol)}
	images := 0
	for _, l := range lines {
		if l.Failure == nil {
			images++
		} else {
			rec.State = catalog.StatePartial
		}
	}
	if images == 0 {
		return Result{}, errors.Join(errs...)
	}
	if err := context.Cause(ctx); err != nil {
		return Result{}, err // interrupted: the same request goes on from here
	}
	// A table that failed because the lease was lost is not failed for whoever has
	// the run now.
	if err := r.mayCommit(ctx, r.lease); err != nil {
		return Result{}, err
	}
	now, err := r.store.ServerTime(ctx)
	if err != nil {
		return Result{}, hbackup.E("ask the time of", string(r.store.Location()), hbackup.KindOther, err)
	}
	rec.Finished = afterSnapshots(now.UTC(), rec.Tables)
	r.dropJournals(ctx)
	if rec, err = catalog.CommitRun(ctx, r.store, rec); err != nil {
		return Result{}, err
	}
	failpoint.Hit(StepRunCommitted)
	err = catalog.FinishJob(ctx, r.store, catalog.JobDone{Request: r.req.ID, Finished: rec.Finished, State: rec.State})
	failpoint.Hit(StepJobFinished)
	return Result{Run: rec}, err
}

// mayCommit is the last look before something is committed: the location is still
// the one that the run began with, the run is still this process's, and so is, as
// the store says, the lease of what is committed.
func (r *run) mayCommit(ctx context.Context, l *lease.Lease) error {
	now, err := catalog.ReadMarker(ctx, r.location)
	if err != nil && !hbackup.IsKind(err, hbackup.KindNotFound) {
		return err
	}
	if err != nil || now.ID != r.marker.ID {
		return hbackup.Errorf("use location", string(r.location.Location()), hbackup.KindConflict, "it is not the one that the run began with (location id %s)", r.marker.ID).
			WithHint("was its disk unmounted, or another one mounted in its place? What the run has written since lies there; run the same request again once the location is back")
	}
	if err := l.Confirm(ctx); err != nil {
		return err
	}
	return r.lease.Check()
}

// slots bounds how many files are copied at a time over all tables.
type slots chan struct{}

func (s slots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) release() { <-s }

// afterSnapshots gives the end of a run by the store's clock. Some stores tell
// whole seconds only: then it is not before the snapshots of the run.
func afterSnapshots(now time.Time, tables []catalog.TableRun) time.Time {
	end := now
	for _, t := range tables {
		if t.SnapshotFinished.After(end) && t.SnapshotFinished.Before(now.Add(time.Second)) {
			end = t.SnapshotFinished
		}
	}
	return end
}

// Took gives the time from the recording of the request to the commit.
func (r *Result) Took() time.Duration { return r.Finished.Sub(r.Started) }
