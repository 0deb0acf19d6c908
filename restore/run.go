package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/internal/failpoint"
	"hbackup/storage"
	"hbackup/storage/lease"
)

// cleanupTime bounds what is still done after the context has ended.
const cleanupTime = time.Minute

// run is one run at work.
type run struct {
	req    Request
	target Target
	opts   Options
	store  storage.Store // the source cluster's folder in the location
	id     identity
	lease  *lease.Lease // nil when the location takes no writes

	image   *catalog.Image
	stores  catalog.Stores     // that hold its files
	source  *snapshot.Manifest // HBase's manifest of the image
	planned *plan              // the plan made last
	fresh   time.Time          // of the attempt that this run has begun
	copied  copied

	mu    sync.Mutex
	notes []string
}

func newRun(req Request, target Target, opts Options) (*run, error) {
	if err := req.validate(target); err != nil {
		return nil, err
	}
	return &run{req: req, target: target, opts: opts.withDefaults(), store: req.Image.Place.Store,
		id: identityOf(req.ID, req.Image.ID, target.Name, req.table())}, nil
}

// note keeps something that the operator should know, once.
func (r *run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := fmt.Sprintf(format, args...); !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

// Run restores the image of the request. All that can be refused is refused
// before anything is written.
//
// After an error nothing of the restore is left on the cluster, with one
// exception that the error's hint names: when the clone may be running its
// snapshot stays, and running again with the same request id goes on from there.
func Run(ctx context.Context, req Request, target Target, opts Options) (Result, error) {
	failpoint.Hit(StepStart)
	r, err := newRun(req, target, opts)
	if err != nil {
		return Result{}, err
	}
	started := time.Now().UTC()
	result, err := r.run(ctx)
	if err != nil {
		return Result{Request: req.ID, Image: req.Image.ID, Table: req.table(), Started: started, Notes: r.notes}, err
	}
	result.Request, result.Image, result.Table = req.ID, req.Image.ID, req.table()
	result.CopiedFiles, result.CopiedBytes = int(r.copied.files.Load()), r.copied.bytes.Load()
	result.Started, result.Finished, result.Notes = started, time.Now().UTC(), r.notes
	return result, nil
}

func (r *run) run(ctx context.Context) (Result, error) {
	done, err := r.finished(ctx)
	if err != nil || done {
		return Result{AlreadyDone: done}, err
	}
	r.opts.Reporter.Stage("check")
	makeNamespace, err := r.survey(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := r.record(ctx); err != nil {
		return Result{}, err
	}
	failpoint.Hit(StepJobRecorded)
	if r.lease == nil { // the location takes no writes
		return r.work(ctx, makeNamespace)
	}
	failpoint.Hit(StepLeaseTaken)
	kept, stop := r.lease.Keep(ctx)
	result, err := r.work(kept, makeNamespace)
	stop()
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if rerr := r.lease.Release(rctx); rerr != nil {
		r.opts.Log.Warn("the restore's lease was not given back; it ends by itself", "request", r.req.ID, "error", rerr)
	}
	return result, err
}

// load reads the image and opens every location that holds files of it.
func (r *run) load(ctx context.Context) (err error) {
	if r.image, r.source, err = loadImage(ctx, r.req.Image); err != nil {
		return err
	}
	r.stores, err = r.req.Image.Stores(ctx, &r.image.Header)
	return err
}

// survey makes every check that can refuse the restore, and writes nothing.
func (r *run) survey(ctx context.Context) (makeNamespace bool, err error) {
	if err := r.load(ctx); err != nil {
		return false, err
	}
	conflicts, makeNamespace, err := r.checkTarget(ctx)
	if err != nil {
		return false, err
	}
	s, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	if s.conflict != nil {
		conflicts = append(conflicts, s.conflict)
	}
	if err := errors.Join(conflicts...); err != nil {
		return false, err
	}
	for _, n := range slices.Concat(notesOn(r.image, r.source), s.plan.notes) {
		r.note("%s", n)
	}
	return makeNamespace, checkStored(ctx, r.stores, r.image)
}

// work does the restore. What an earlier run has left is looked at again, as the
// lease is held only now.
func (r *run) work(ctx context.Context, makeNamespace bool) (Result, error) {
	r.dropFinished(ctx)
	if makeNamespace {
		if err := r.makeNamespace(ctx); err != nil {
			return Result{}, err
		}
	}
	for {
		s, err := r.look(ctx)
		if err != nil {
			return Result{}, err
		}
		if s.conflict != nil {
			return Result{}, s.conflict
		}
		regions, running, err := r.attempt(ctx, s)
		if err == nil {
			return r.finish(ctx, s.plan, regions)
		}
		if errors.Is(err, errGone) && s.takeover {
			// The order of an earlier run has ended well, and the table was
			// dropped since, and with it perhaps files: the answers to that order
			// are worth nothing any more.
			if err := r.held(); err != nil {
				return Result{}, hbackup.E("restore", s.plan.table.String(), hbackup.KindOther, err)
			}
			if derr := r.dropSnapshot(ctx); derr != nil {
				return Result{}, derr
			}
			r.fresh = time.Time{}
			continue
		}
		return Result{}, r.retreat(ctx, s, running, err)
	}
}

// attempt puts snapshot and files on the cluster, clones, and checks the clone,
// as far as an earlier run has not. running says that the clone may be running,
// or may have made the table.
func (r *run) attempt(ctx context.Context, s *situation) (regions int, running bool, err error) {
	cctx := ctx
	if !s.made {
		if err := r.place(ctx, s); err != nil {
			return 0, s.sent, err
		}
		r.opts.Reporter.Stage("clone")
		var cancel context.CancelFunc
		cctx, cancel = context.WithTimeout(ctx, r.opts.CloneTimeout)
		defer cancel()
		if running, err = r.clone(cctx, s); err != nil {
			return 0, running, err
		}
		failpoint.Hit(StepCloned)
	}
	r.opts.Reporter.Stage("verify")
	regions, err = r.checkClone(cctx, s.plan)
	if err == nil {
		failpoint.Hit(StepCloneChecked)
	}
	return regions, true, err
}

// place puts snapshot and files on the cluster, in the order in which the
// cleaners keep them.
func (r *run) place(ctx context.Context, s *situation) error {
	p := s.plan
	if !s.takeover {
		if s.litter {
			if err := r.held(); err != nil {
				return err
			}
			if err := r.dropSnapshot(ctx); err != nil {
				return err
			}
		}
		if err := r.putSnapshot(ctx, p); err != nil {
			return err
		}
	}
	r.opts.Reporter.Stage("copy")
	r.opts.Reporter.AddTotal(p.bytes, p.files)
	if err := r.putFiles(ctx, s); err != nil {
		return err
	}
	failpoint.Hit(StepFilesCopied)
	if err := r.verifyFiles(ctx, p); err != nil {
		return err
	}
	failpoint.Hit(StepFilesVerified)
	return nil
}

// held fails when the lease is lost: then what an earlier try has left on the
// cluster may be in use by another process, and is not to be removed.
func (r *run) held() error {
	if r.lease == nil { // the location takes no writes
		return nil
	}
	return r.lease.Check()
}

// finish records the end, and only then drops the snapshot: a run that is killed
// in between finds the record and drops it.
func (r *run) finish(ctx context.Context, p *plan, regions int) (Result, error) {
	r.opts.Reporter.Stage("finish")
	err := r.recordEnd(ctx)
	if err == nil {
		failpoint.Hit(StepJobFinished)
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		err = r.dropSnapshot(dctx)
	}
	if err != nil {
		return Result{}, hbackup.E("finish restore", p.table.String(), hbackup.KindOther, err).
			WithHint("the table is complete, only the snapshot %s is left on cluster %s: run this again with the same request id %q", r.id.snapshot(), r.target.Name, string(r.req.ID))
	}
	failpoint.Hit(StepSnapshotDeleted)
	return Result{Regions: regions, Files: p.files, Bytes: p.bytes}, nil
}

func (r *run) recordEnd(ctx context.Context) error {
	if r.lease == nil {
		return nil
	}
	if err := r.lease.Check(); err != nil {
		return err
	}
	now, err := r.store.ServerTime(ctx)
	if err != nil {
		return hbackup.E("ask the time of", string(r.store.Location()), hbackup.KindOther, err)
	}
	return catalog.FinishJob(ctx, r.store, catalog.JobDone{Request: r.req.ID, Finished: now.UTC(), State: catalog.StateComplete})
}

// retreat removes what an attempt that failed has put on the cluster, the
// snapshot before its files, and gives the error with what is left in its hint.
func (r *run) retreat(ctx context.Context, s *situation, running bool, cause error) error {
	const op = "restore"
	table := s.plan.table.String()
	if errors.Is(cause, errTaken) || r.held() != nil {
		return hbackup.E(op, table, hbackup.KindOther, cause) // it is another process's now
	}
	if running {
		e := hbackup.E(op, table, hbackup.KindOther, cause)
		hint := hbackup.HintOf(cause)
		if hint != "" {
			hint += "; "
		}
		return e.WithHint("%sthe clone may be running or have made the table, so the snapshot %s stays on cluster %s: run this again with the same request id %q to go on",
			hint, r.id.snapshot(), r.target.Name, string(r.req.ID))
	}
	r.opts.Reporter.Stage("clean up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	err := r.dropSnapshot(ctx)
	if err == nil && r.lease != nil {
		// Without the lease another run of the same request may be using them;
		// HBase's cleaners remove them some minutes later.
		err = r.dropStage(ctx, s.plan)
	}
	if err != nil {
		e := hbackup.E(op, table, hbackup.KindOf(cause), errors.Join(cause, err))
		return e.WithHint("not all of it could be removed from cluster %s: run this again, or hbackup check", r.target.Name)
	}
	return hbackup.E(op, table, hbackup.KindOther, cause)
}

// makeNamespace makes the table's name space as it was at the source. It is not
// asked for one that exists: that can block the master.
func (r *run) makeNamespace(ctx context.Context) error {
	ns := r.req.table().Namespace
	err := r.target.Master.CreateNamespace(ctx, ns, r.namespaceConfiguration(), rpc.NewNonce())
	if err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
		return hbackup.E("create name space", ns, hbackup.KindOther, err)
	}
	r.note("the name space %q was made", ns)
	failpoint.Hit(StepNamespaceMade)
	return nil
}

// namespaceConfiguration gives the settings of the source's name space when the
// new one has its name; another name space is another matter.
func (r *run) namespaceConfiguration() map[string]string {
	if r.req.table().Namespace != r.image.Table.Namespace {
		return nil
	}
	return r.image.Namespace
}
