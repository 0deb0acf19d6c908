package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"hbackup"
	"hbackup/engine"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
)

// errGone says that the master reports success and there is no table.
var errGone = errors.New("the master says that the clone has ended well, but there is no such table")

// isAnswer reports whether the error is the master's own last word on the clone,
// so that nothing runs and nothing will be made: a procedure that ended with an
// exception, or a call that was refused. After any other error something may
// still run, unless it was found out before anything was sent.
func isAnswer(err error) bool {
	var ended *rpc.ProcedureError
	var refused *rpc.RemoteError
	switch {
	case errors.As(err, &ended):
		return true
	case errors.As(err, &refused):
		return !hbackup.IsKind(err, hbackup.KindTimeout, hbackup.KindUnavailable, hbackup.KindThrottled, hbackup.KindBusy)
	}
	return hbackup.IsKind(err, hbackup.KindUsage, hbackup.KindNotFound, hbackup.KindExists, hbackup.KindIncomplete, hbackup.KindDenied, hbackup.KindUnsupported)
}

// clone orders the clone and waits for its end. running says that it may still
// be running, or may have made something.
func (r *run) clone(ctx context.Context, s *situation) (running bool, err error) {
	p := s.plan
	order := rpc.CloneRequest{Snapshot: p.attempt.id.snapshot(), Target: p.table, Nonce: p.attempt.nonce(), Sent: s.sent}
	err = r.target.Master.Clone(ctx, order)
	if err == nil {
		return false, nil
	}
	err = hbackup.E("clone to table", p.table.String(), hbackup.KindOther, err)
	// The answer is not all: the table may be there, made by this very order.
	exists, lerr := r.tableExists(ctx)
	if lerr != nil {
		return true, err
	}
	if exists {
		ours, lerr := r.isOurs(ctx, p)
		if lerr == nil && ours {
			return false, nil
		}
		if lerr == nil && hbackup.IsKind(err, hbackup.KindExists) {
			return false, r.tableIsThere("somebody has just made it")
		}
		return true, err
	}
	return !isAnswer(err), err
}

// awaitTable waits until the table serves.
func (r *run) awaitTable(ctx context.Context, t hbackup.TableName) error {
	for {
		state, err := r.target.Master.TableState(ctx, t)
		switch {
		case hbackup.IsKind(err, hbackup.KindNotFound):
			return hbackup.E("check clone", t.String(), hbackup.KindIncomplete, errGone)
		case err != nil:
			return hbackup.E("check clone", t.String(), hbackup.KindOther, err)
		case state == rpc.TableEnabled:
			return nil
		case state != rpc.TableEnabling:
			return hbackup.Errorf("check clone", t.String(), hbackup.KindConflict, "the table is %s: somebody is working on it", state)
		}
		if err := r.opts.wait(ctx, time.Second); err != nil {
			return hbackup.E("wait for table", t.String(), hbackup.KindOther, err)
		}
	}
}

// checkClone holds the finished table against the plan: it serves, its regions
// are the plan's, each of them has the plan's files, and the bytes of these are
// still there. It gives the number of regions.
func (r *run) checkClone(ctx context.Context, p *plan) (int, error) {
	if err := r.awaitTable(ctx, p.table); err != nil {
		return 0, err
	}
	regions, err := r.regions(ctx, p.table)
	if err != nil {
		return 0, hbackup.E("check clone", p.table.String(), hbackup.KindOther, err)
	}
	if err := compareRegions(p, regions); err != nil {
		return 0, hbackup.E("check clone", p.table.String(), hbackup.KindIncomplete, err).
			WithHint("do not use the table: drop it, then run the restore again")
	}
	if n := newerRegions(p, regions); n > 0 {
		r.note("%d regions of the table were split or merged since the clone", n)
	}
	return len(regions), r.checkFiles(ctx, p, regions)
}

func (r *run) regions(ctx context.Context, t hbackup.TableName) ([]rpc.Region, error) {
	regions, err := r.target.Master.Regions(ctx, t)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	return regions, err
}

// regionKey is what a clone keeps of a region.
type regionKey struct {
	id         uint64
	start, end string
}

func keyOf(r rpc.Region) regionKey {
	return regionKey{uint64(r.ID), string(r.StartKey), string(r.EndKey)}
}

func plannedRegions(p *plan) map[regionKey]*snapshot.Region {
	out := map[regionKey]*snapshot.Region{}
	for _, s := range p.serving() {
		out[regionKey{s.ID, string(s.StartKey), string(s.EndKey)}] = s
	}
	return out
}

// newerRegions counts the regions that are not the plan's.
func newerRegions(p *plan, regions []rpc.Region) int {
	planned := plannedRegions(p)
	n := 0
	for _, got := range regions {
		if planned[keyOf(got)] == nil {
			n++
		}
	}
	return n
}

// compareRegions reports how the table's regions differ from the plan's. A
// cluster that splits or merges right after the clone is no fault: such regions
// were born after the snapshot, and all still cover the key space.
func compareRegions(p *plan, regions []rpc.Region) error {
	planned, born := plannedRegions(p), p.attempt.regionID()
	regions = slices.SortedFunc(slices.Values(regions), func(a, b rpc.Region) int { return bytes.Compare(a.StartKey, b.StartKey) })
	var end []byte
	for i, got := range regions {
		switch {
		case i == 0 && len(got.StartKey) > 0:
			return fmt.Errorf("no region holds the rows before %q", got.StartKey)
		case i > 0 && len(end) == 0:
			return fmt.Errorf("the regions overlap at %q", got.StartKey)
		case !bytes.Equal(got.StartKey, end):
			return fmt.Errorf("the regions have a hole or overlap between %q and %q", end, got.StartKey)
		case planned[keyOf(got)] == nil && uint64(got.ID) <= born:
			return fmt.Errorf("the region %d [%q, %q) is not one of the backup", got.ID, got.StartKey, got.EndKey)
		}
		end = got.EndKey
	}
	switch {
	case len(regions) == 0:
		return fmt.Errorf("it has no regions; the backup has %d", len(planned))
	case len(end) > 0:
		return fmt.Errorf("no region holds the rows from %q on", end)
	case newerRegions(p, regions) == 0 && len(regions) != len(planned):
		return fmt.Errorf("it has %d regions, the backup has %d", len(regions), len(planned))
	}
	return nil
}

// checkFiles looks into the regions' directories for a link to every file of the
// plan, and for what the links lead to: from the clone on HBase keeps that, so what
// is there now stays. Links of a region that has split since, or that a compaction
// has replaced, need not be there any more, and their files neither.
func (r *run) checkFiles(ctx context.Context, p *plan, regions []rpc.Region) error {
	faults, err := r.listFaults(ctx, p)
	if err != nil {
		return err
	}
	lost := map[string]bool{} // by path relative to the root
	for _, f := range faults {
		lost[f.path] = true
	}
	there := map[regionKey]bool{}
	for _, got := range regions {
		there[keyOf(got)] = true
	}
	type store struct {
		region *snapshot.Region
		files  *snapshot.FamilyFiles
	}
	var stores []store
	for i := range p.regions {
		s := &p.regions[i]
		if !s.IsMOB() && !there[regionKey{s.ID, string(s.StartKey), string(s.EndKey)}] {
			continue
		}
		for j := range s.Families {
			if len(s.Families[j].Files) > 0 {
				stores = append(stores, store{s, &s.Families[j]})
			}
		}
	}
	var mu sync.Mutex
	compacted := 0
	err = engine.Local(ctx, r.opts.Files, engine.Each(stores), func(ctx context.Context, s store) error {
		gone, err := r.checkStore(ctx, p, s.region, s.files, lost)
		if gone {
			mu.Lock()
			compacted++
			mu.Unlock()
		}
		return err
	})
	if err == nil && compacted > 0 {
		r.note("%d stores of the table were compacted since the clone", compacted)
	}
	return err
}

// checkStore looks for the links of one family in one region of the table. Files
// that were lost before must not be linked to any more.
func (r *run) checkStore(ctx context.Context, p *plan, s *snapshot.Region, ff *snapshot.FamilyFiles, lost map[string]bool) (compacted bool, err error) {
	const op, hint = "check clone", "do not use the table: drop it, then run the restore again"
	place := snapshot.Target{Table: p.table, Region: snapshot.EncodeRegionName(p.table, s.StartKey, s.ID, 0), Family: ff.Family, File: "x"}
	live := snapshot.DataPath(r.target.Root, place)
	if s.IsMOB() {
		place.Region = snapshot.MOBRegion(p.table)
		live = snapshot.MOBPath(r.target.Root, place)
	}
	names, plain, err := r.storeNames(ctx, path.Dir(live))
	if err != nil {
		return false, err
	}
	var archived map[string]bool
	for _, f := range ff.Files {
		link := f.Name
		if s.IsMOB() {
			link = snapshot.LinkName(s.Table, s.Encoded, f.Name)
		}
		if names[link] || p.table == s.Table && names[f.Name] {
			t, err := snapshot.Resolve(s, ff.Family, f)
			if err != nil {
				return false, err
			}
			if lost[t.ArchivePath()] {
				return false, hbackup.Errorf(op, r.target.FS.URI()+snapshot.ArchivePath(r.target.Root, t), hbackup.KindIncomplete, "the table needs this file, and it is gone or not whole: something deletes from the cluster's archive").
					WithHint(hint)
			}
			continue
		}
		if archived == nil {
			if archived, _, err = r.storeNames(ctx, path.Dir(snapshot.ArchivePath(r.target.Root, place))); err != nil {
				return false, err
			}
		}
		if !archived[link] && plain == 0 {
			return false, hbackup.Errorf(op, r.target.FS.URI()+path.Join(path.Dir(live), link), hbackup.KindIncomplete, "the table lacks this file of the backup").
				WithHint(hint)
		}
		compacted = true
	}
	return compacted, nil
}

// storeNames lists a store's directory; plain counts the files that are no links.
func (r *run) storeNames(ctx context.Context, dir string) (names map[string]bool, plain int, err error) {
	entries, err := r.readDir(ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	names = make(map[string]bool, len(entries))
	for _, e := range entries {
		if e.Dir {
			continue
		}
		names[e.Name] = true
		if n, err := snapshot.ParseFileName(e.Name); err == nil && !n.IsLink() && !n.IsReference() {
			plain++
		}
	}
	return names, plain, nil
}
