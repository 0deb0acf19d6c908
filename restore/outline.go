package restore

import (
	"context"
	"slices"

	"hbackup"
	"hbackup/catalog"
)

// Outline says what a restore would do, for a dry run.
type Outline struct {
	Image       catalog.Header
	Table       hbackup.TableName // that would be made
	AlreadyDone bool              // the request has reached its end; nothing would be done

	Regions int
	Files   int
	Bytes   int64
	// Continues says that a run of the same request was killed and would be
	// continued; TableMade that it got as far as the table.
	Continues, TableMade bool

	Snapshot        string // that would be on the cluster meanwhile
	Stage           string // folder below the root directory where the files would go
	CreateNamespace bool

	Notes     []string
	Conflicts []error // why it would be refused
}

// Plan makes the checks of Run and says what Run would do. It writes nothing. An
// error means that the question could not be answered, or that the image itself
// cannot be restored; what stands in the way on the cluster is in Conflicts.
func Plan(ctx context.Context, req Request, target Target, opts Options) (Outline, error) {
	r, err := newRun(req, target, opts)
	if err != nil {
		return Outline{}, err
	}
	o := Outline{Table: req.table(), Snapshot: r.id.snapshot()}
	if o.AlreadyDone, err = r.isFinished(ctx); err != nil {
		return o, err
	}
	if err := r.load(ctx); err != nil {
		return o, err
	}
	o.Image = r.image.Header
	if o.AlreadyDone {
		return o, nil
	}
	if o.Conflicts, o.CreateNamespace, err = r.checkTarget(ctx); err != nil {
		return o, err
	}
	s, err := r.look(ctx)
	if err != nil {
		return o, err
	}
	if s.conflict != nil {
		o.Conflicts = append(o.Conflicts, s.conflict)
	}
	if err := checkStored(ctx, r.stores, r.image); err != nil {
		return o, err
	}
	if _, open, err := r.others(ctx); err == nil {
		r.noteOthers(open)
	}
	o.Regions, o.Files, o.Bytes, o.Stage = len(s.plan.serving()), s.plan.files, s.plan.bytes, s.plan.stage()
	o.Continues, o.TableMade = s.takeover, s.made
	o.Notes = slices.Concat(r.notes, notesOn(r.image, r.source), s.plan.notes)
	return o, nil
}
