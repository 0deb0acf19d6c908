package restore

import (
	"bytes"
	"context"
	"io"
	"path"
	"time"

	"hbackup"
	"hbackup/hbase/snapshot"
)

// situation is what is on the cluster and the plan that follows from it.
type situation struct {
	plan *plan
	// litter is a snapshot directory of this restore that is of no use: half
	// written by a run that was killed, or composed in another way.
	litter bool
	// takeover says that the plan's snapshot is on the cluster, whole, left by an
	// earlier run; sent that the earlier run may have ordered the clone, as all
	// files are in their places; made that the table is there by its doing.
	takeover, sent, made bool
	conflict             error // why nothing may be done, or nil
}

// look finds out what an earlier run of this restore has left.
func (r *run) look(ctx context.Context) (*situation, error) {
	left, there, err := r.leftSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	exists, err := r.tableExists(ctx)
	if err != nil {
		return nil, err
	}
	s := &situation{}
	if !left.IsZero() {
		if s.plan, err = r.planFor(attempt{r.id, left}); err != nil {
			return nil, err
		}
		if s.takeover, err = r.isPlaced(ctx, s.plan); err != nil {
			return nil, err
		}
	}
	if !s.takeover {
		s.litter = there
		s.plan, err = r.planFor(r.newAttempt(left))
		if err == nil && exists {
			s.conflict = r.tableIsThere("it exists already")
		}
		return s, err
	}
	if exists {
		if s.made, err = r.isOurs(ctx, s.plan); err == nil && !s.made {
			s.conflict = r.tableIsThere("it exists already, and this restore did not make it")
		}
		return s, err
	}
	faults, err := r.listFaults(ctx, s.plan)
	s.sent = len(faults) == 0
	return s, err
}

func (r *run) tableIsThere(why string) error {
	return hbackup.Errorf("restore", r.req.table().String(), hbackup.KindRefused, "%s on cluster %s", why, r.target.Name).
		WithHint("restore under another name with --as, or drop the table first")
}

func (r *run) tableExists(ctx context.Context) (bool, error) {
	_, err := r.target.Master.TableState(ctx, r.req.table())
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, hbackup.E("look up table", r.req.table().String(), hbackup.KindOther, err)
	}
	return true, nil
}

// newAttempt gives an attempt other than the one that was found.
func (r *run) newAttempt(left time.Time) attempt {
	if r.fresh.IsZero() || r.fresh.Equal(left) {
		r.fresh = time.Now().UTC().Truncate(time.Millisecond)
	}
	if !r.fresh.After(left) {
		r.fresh = left.Add(time.Millisecond)
	}
	return attempt{r.id, r.fresh}
}

// planFor makes the plan of an attempt, or gives the one made last.
func (r *run) planFor(a attempt) (*plan, error) {
	if r.planned != nil && r.planned.attempt.created.Equal(a.created) {
		return r.planned, nil
	}
	p, err := makePlan(r.image, r.source, a, r.req.table())
	r.planned = p
	return p, err
}

func (r *run) snapshotDir() string { return snapshot.SnapshotDir(r.target.Root, r.id.snapshot()) }

// leftSnapshot looks for the snapshot directory of this restore. The time is
// zero when the directory has no description that can be read.
func (r *run) leftSnapshot(ctx context.Context) (created time.Time, there bool, err error) {
	dir := r.snapshotDir()
	_, err = r.target.FS.Stat(ctx, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return created, false, nil
	}
	if err != nil {
		return created, false, hbackup.E("look for snapshot", r.target.FS.URI()+dir, hbackup.KindOther, err)
	}
	d, err := snapshot.ReadDescription(func(name string) ([]byte, error) { return r.readSmall(ctx, path.Join(dir, name)) })
	switch {
	case err == nil:
		return d.Created, true, nil
	case isTorn(err):
		return created, true, nil
	}
	return created, true, hbackup.E("look at snapshot", r.target.FS.URI()+dir, hbackup.KindOther, err)
}

// isTorn reports whether the error is that of a file which a killed process has
// not finished, rather than of a file system that does not answer.
func isTorn(err error) bool {
	return hbackup.IsKind(err, hbackup.KindNotFound, hbackup.KindCorrupt, hbackup.KindIncomplete, hbackup.KindUnsupported, hbackup.KindConflict)
}

// isPlaced reports whether the cluster has exactly the plan's snapshot.
func (r *run) isPlaced(ctx context.Context, p *plan) (bool, error) {
	for _, f := range []struct {
		name string
		want []byte
	}{{snapshot.ManifestFile, p.manifest}, {snapshot.InfoFile, p.info}} {
		at := path.Join(r.snapshotDir(), f.name)
		same, err := r.holds(ctx, at, f.want)
		if err != nil {
			return false, hbackup.E("look at snapshot", r.target.FS.URI()+at, hbackup.KindOther, err)
		}
		if !same {
			return false, nil
		}
	}
	return true, nil
}

// holds reports whether a file is there, whole, with exactly that content.
func (r *run) holds(ctx context.Context, at string, want []byte) (bool, error) {
	body, info, err := r.target.FS.Open(ctx, at, 0)
	if isTorn(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer body.Close() // only read from
	if info.Size != int64(len(want)) {
		return false, nil
	}
	chunk := make([]byte, min(len(want), bufferSize))
	for rest := want; len(rest) > 0; {
		b := chunk[:min(len(rest), len(chunk))]
		if _, err := io.ReadFull(body, b); err != nil {
			if isTorn(err) {
				return false, nil
			}
			return false, err
		}
		if !bytes.Equal(b, rest[:len(b)]) {
			return false, nil
		}
		rest = rest[len(b):]
	}
	return true, nil
}

// readSmall reads a snapshot's description, which is some hundred bytes long.
func (r *run) readSmall(ctx context.Context, at string) ([]byte, error) {
	body, info, err := r.target.FS.Open(ctx, at, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close() // only read from
	if info.Size > 16<<20 {
		return nil, hbackup.Errorf("read", r.target.FS.URI()+at, hbackup.KindCorrupt, "%d bytes are no snapshot description", info.Size)
	}
	data := make([]byte, info.Size)
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, hbackup.E("read", r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	return data, nil
}

// isOurs reports whether the table was made from the plan's snapshot, which is
// still on the cluster: its regions are the plan's, by their keys and by the id
// that only they have, or were made of these by splits and merges since.
func (r *run) isOurs(ctx context.Context, p *plan) (bool, error) {
	regions, err := r.regions(ctx, p.table)
	if err != nil {
		return false, hbackup.E("list regions of", p.table.String(), hbackup.KindOther, err)
	}
	return len(regions) > newerRegions(p, regions) && compareRegions(p, regions) == nil, nil
}
