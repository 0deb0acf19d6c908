package backup

import (
	"context"
	"log/slog"
	"sync/atomic"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// Reference says what becomes of files that an earlier location of the cluster's
// history holds and the target does not. The zero value means ReferenceOwn.
type Reference string

const (
	// ReferenceOwn copies them: every image is whole in its own location.
	ReferenceOwn Reference = "own"
	// ReferenceAny leaves them where they are, and the image says where that is.
	ReferenceAny Reference = "any"
)

// lender is an earlier location whose files may be named.
type lender struct {
	library
	name storage.Location // of the location, for people
	lost atomic.Bool      // it failed: for the rest of the run it is left alone
}

// lendersOf gives the earlier locations of which it is known which they are.
func lendersOf(places []catalog.Place, target string, log *slog.Logger) []*lender {
	var all []*lender
	for _, p := range places {
		if p.LocationID == target {
			continue // the same place under another name
		}
		if !p.CanBeReferred() {
			log.Warn("an earlier location does not say which one it is, so no image can name its files; what it holds is copied", "location", p.Name)
			continue
		}
		all = append(all, &lender{library: &shelf{p.LocationID, p.Store}, name: p.Store.Location()})
	}
	return all
}

// borrow settles what an earlier location holds as one of its images, or one of the
// target's, says, and gives the rest. Anything less than that is copied: a damaged
// object, one that no image names, or a location that does not answer.
func (p *planner) borrow(ctx context.Context, l *lender, owner hbackup.TableName, needs []need, out *plan) (missing []need, err error) {
	if l.lost.Load() {
		return needs, nil
	}
	lent := map[snapshot.Target]bool{}
	settle := func(f found, said word) error {
		switch judge(f.need, f.stored, said.file) {
		case reuse:
			if p.another(f.need, said) {
				break
			}
			out.reuse = append(out.reuse, at(l.id(), said.file))
			lent[f.target] = true
		case conflict:
			p.log.Warn("the cluster's file is not as an image in an earlier location says; it is copied", "file", f.key(), "location", l.name, "cluster", f.size, "image", said.file.Size)
		}
		return nil
	}
	before := len(out.reuse)
	if err := p.survey(ctx, l.library, owner, needs, settle); err != nil {
		if hbackup.IsKind(err, hbackup.KindInterrupted) {
			return nil, err
		}
		out.reuse = out.reuse[:before]
		if !l.lost.Swap(true) {
			p.log.Warn("an earlier location cannot be looked at; what it holds is copied", "location", l.name, "error", err)
		}
		return needs, nil
	}
	for i := range needs {
		if !lent[needs[i].target] {
			missing = append(missing, needs[i])
		}
	}
	return missing, nil
}

// survey hands over what an earlier location holds, each file with what an image
// says of it if one does.
func (p *planner) survey(ctx context.Context, place library, owner hbackup.TableName, needs []need, settle func(found, word) error) error {
	witnesses, err := p.ask(ctx, []library{place, p.here}, owner)
	if err != nil {
		return err
	}
	var pending []found
	_, err = p.compare(ctx, place, owner, needs, witnesses, func(f found, said word) error {
		if judge(f.need, f.stored, said.file) == unproven {
			pending = append(pending, f)
			return nil
		}
		return settle(f, said)
	})
	if err != nil {
		return err
	}
	copying := func(f found) int64 { return f.stored + requestCost }
	return p.lookBack(ctx, place, owner, pending, witnesses, copying, settle)
}
