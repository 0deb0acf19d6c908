package backup

import (
	"context"
	"log/slog"
	"slices"

	"hbackup"
	"hbackup/catalog"
)

// planner finds out what becomes of each file that a table's image needs: by going
// side by side along the needed files, a listing of the location made now, and the
// files of the newest images, each in the order of the keys. Its memory does not
// grow with what the location holds.
//
// The newest image of the table names nearly every file that is there. Files that
// lie under another table, which the table was cloned from, are looked up in the
// newest image of that table, too.
type planner struct {
	table   hbackup.TableName
	here    library
	lenders []*lender // earlier locations whose files may be named instead of copied
	// proof is what it costs to find out that an object which no image names is
	// good, in bytes.
	proof func(found) int64
	// closely says which files must be read, to know which other files they need,
	// unless an image of this very table names them: then they were read for it.
	closely func(need) bool
	// always says which of these no image at all can vouch for; nil when there are none.
	always func(need) bool
	log    *slog.Logger

	needed    int
	witnesses map[source]*witness
}

// source names a witness.
type source struct {
	lib   library
	table hbackup.TableName
}

// found is a needed file that a location holds.
type found struct {
	need
	stored int64 // bytes
}

// plan compares the needs, which are in the order of their keys, with the locations.
func (p *planner) plan(ctx context.Context, needs []need) (plan, error) {
	var out plan
	p.needed = len(needs)
	err := byOwner(needs, func(owner hbackup.TableName, needs []need) error {
		missing, err := p.own(ctx, owner, needs, &out)
		for _, l := range p.lenders {
			if err != nil || len(missing) == 0 {
				break
			}
			missing, err = p.borrow(ctx, l, owner, missing, &out)
		}
		out.copy = append(out.copy, missing...)
		return err
	})
	out.parents = p.parents()
	return out, err
}

// parents gives the images that were asked first, the newest last.
func (p *planner) parents() (ids []hbackup.ImageID) {
	for _, w := range p.witnesses {
		if w.newest != nil {
			ids = append(ids, w.refs[w.older].ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// own settles what the target location holds, and gives what it lacks.
func (p *planner) own(ctx context.Context, owner hbackup.TableName, needs []need, out *plan) (missing []need, err error) {
	witnesses, err := p.ask(ctx, []library{p.here}, owner)
	if err != nil {
		return nil, err
	}
	var pending []found
	settle := func(f found, said word) error {
		switch judge(f.need, f.stored, said.file) {
		case reuse:
			if p.another(f.need, said) {
				out.recheck = append(out.recheck, f.need)
				return nil
			}
			if out.reuse == nil { // mostly all of them
				out.reuse = make([]catalog.File, 0, p.needed)
			}
			out.reuse = append(out.reuse, at("", said.file))
		case replace:
			out.replace = append(out.replace, f.need)
		case conflict:
			return conflictOf(f.need, said.file)
		default:
			pending = append(pending, f)
		}
		return nil
	}
	missing, err = p.compare(ctx, p.here, owner, needs, witnesses, settle)
	if err != nil {
		return nil, err
	}
	unsettled := pending
	pending = nil
	if err := p.lookBack(ctx, p.here, owner, unsettled, witnesses, p.proof, settle); err != nil {
		return nil, err
	}
	for _, f := range pending {
		if judge(f.need, f.stored, nil) == odd {
			out.replace = append(out.replace, f.need) // no image has ever named it
		} else {
			out.recheck = append(out.recheck, f.need)
		}
	}
	return missing, nil
}

// another reports that an image of another table, or of the table when it was another
// one, vouches for the file, and that this is not enough: what the table needs besides
// the file is not known from it.
func (p *planner) another(n need, said word) bool {
	return p.closely != nil && p.closely(n) && (said.by != p.table || p.always != nil && p.always(n))
}

// at gives an image's word of a file for an image to be made: where it lies is seen
// from the target location.
func at(location string, named *catalog.File) catalog.File {
	f := *named
	f.Location = location
	return f
}

// compare goes along needs, listing and images, hands over each file that the
// location holds with what the first image that knows it says, and gives those that
// it does not hold.
func (p *planner) compare(ctx context.Context, place library, owner hbackup.TableName, needs []need, witnesses []*witness, settle func(found, word) error) (missing []need, err error) {
	objects := objectsOf(place.stored(ctx, owner))
	defer objects.stop()
	said := newTestimony(place, owner, witnesses)
	defer said.stop()
	for i := range needs {
		n := &needs[i]
		o, w := objects.seek(n), said.seek(n)
		switch {
		case o != nil:
			err = settle(found{*n, o.Size}, w)
		case place == p.here && w.file != nil && judge(*n, w.file.Size, w.file) == conflict:
			err = conflictOf(*n, w.file)
		default:
			missing = append(missing, *n)
		}
		if err != nil {
			return nil, err
		}
	}
	if objects.err != nil {
		return nil, hbackup.E("list files of", owner.String(), hbackup.KindOther, objects.err)
	}
	return missing, said.err(p.log)
}

// ask gives the witnesses for an owner's files: the images of the table itself, and
// of the owner, in each of the libraries.
func (p *planner) ask(ctx context.Context, libs []library, owner hbackup.TableName) ([]*witness, error) {
	var all []*witness
	for _, lib := range libs {
		for _, t := range slices.Compact([]hbackup.TableName{p.table, owner}) {
			w := p.witnesses[source{lib, t}]
			if w == nil {
				var err error
				if w, err = newWitness(ctx, lib, t, p.log); err != nil {
					return nil, err
				}
				if p.witnesses == nil {
					p.witnesses = map[source]*witness{}
				}
				p.witnesses[source{lib, t}] = w
			}
			all = append(all, w)
		}
	}
	return all, nil
}
