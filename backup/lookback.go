package backup

import (
	"context"

	"hbackup"
	"hbackup/catalog"
)

const (
	// requestCost is what a request is worth in bytes: what a store gives in the
	// time of its answer.
	requestCost = 64 << 10
	// lookBackImages bounds how many older images are read for files that the newest
	// ones do not name: a month of daily backups.
	lookBackImages = 32
)

// lookBack looks files up that a location holds and its newest images do not name,
// in older ones, the newest first. HBase brings such files back when a table is
// restored to an old snapshot. Mostly, though, they were left by a run that died,
// and no image names them: so images are read as long as that costs less, all
// together, than to prove the files without them, and at most twice as much is done
// as was needed.
//
// An object whose size is not that of the cluster's file is looked up in every image
// that there is: before it is replaced nobody may have named it like that.
func (p *planner) lookBack(ctx context.Context, place library, owner hbackup.TableName, pending []found, witnesses []*witness, cost func(found) int64, settle func(found, word) error) error {
	older := make([]int, len(witnesses))
	for i, w := range witnesses {
		if w.lib == place {
			older[i] = w.older
		}
	}
	spent := int64(0)
	for read := 0; len(pending) > 0; read++ {
		last := -1
		for i, w := range witnesses {
			if older[i] > 0 && (last < 0 || w.refs[older[i]-1].ID > witnesses[last].refs[older[last]-1].ID) {
				last = i
			}
		}
		if last < 0 {
			break
		}
		older[last]--
		w := witnesses[last]
		ref := w.refs[older[last]]
		spent += ref.Size + requestCost
		if !insists(pending) && (read >= lookBackImages || spent > sum(pending, cost)) {
			break
		}
		var err error
		if pending, err = p.lookUp(ctx, w, ref, place, owner, pending, settle); err != nil {
			return err
		}
	}
	for _, f := range pending {
		if err := settle(f, word{}); err != nil {
			return err
		}
	}
	return nil
}

// lookUp settles what one older image names, and gives the rest.
func (p *planner) lookUp(ctx context.Context, w *witness, ref catalog.ImageRef, place library, owner hbackup.TableName, pending []found, settle func(found, word) error) (rest []found, err error) {
	list, err := w.lib.open(ctx, w.table, ref)
	if err != nil {
		return pending, passOver(err, w.table, p.log)
	}
	files := filesOf(list.FilesIn(catalog.ArchivePrefix(owner)))
	defer files.stop()
	for i := range pending {
		f := &pending[i]
		named := files.seek(&f.need)
		if named == nil || !liesAt(place, w.lib, named) {
			rest = append(rest, *f)
		} else if err := settle(*f, word{named, w.table}); err != nil {
			return nil, err
		}
	}
	if files.err != nil {
		return rest, passOver(files.err, w.table, p.log)
	}
	return rest, nil
}

// insists reports whether one of the files must be looked up at any cost.
func insists(pending []found) bool {
	for _, f := range pending {
		if judge(f.need, f.stored, nil) == odd {
			return true
		}
	}
	return false
}

func sum(pending []found, cost func(found) int64) (all int64) {
	for _, f := range pending {
		all += cost(f)
	}
	return all
}
