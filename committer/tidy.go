package committer

import (
	"context"
	"errors"

	"hbackup"
	"hbackup/storage"
)

// Leftover is the job record of one image whose run is not at work, or is about
// to be: whoever tidies holds the run's lease.
type Leftover struct {
	Folder string // of the record, ending in '/'
	// Resume leaves the uploads that are on record to the image's next attempt, and
	// looks only for those that are not.
	Resume bool
}

// Accounted names attempts of which every upload is on record or gone.
type Accounted map[string]bool

// Tidied is what Tidy has done.
type Tidied struct {
	Dropped   int // uploads
	Accounted Accounted
}

// Tidy drops the uploads that dead attempts have left and closes their records.
// Alone reports whether no other run is at work in the place: an upload that has
// no ticket could be another run's of the same key, so it is dropped only then,
// and stays for a later run otherwise. An attempt that fails does not keep the
// others from being tidied.
func Tidy(ctx context.Context, s storage.Store, left []Leftover, alone func(context.Context) (bool, error)) (Tidied, error) {
	h, holds := storage.HolderOf(s)
	if !holds || len(left) == 0 {
		return Tidied{}, nil
	}
	t := tidy{store: s, holder: h, alone: alone, known: map[string]bool{}, out: Tidied{Accounted: Accounted{}}}
	attempts := make([][]*attempt, len(left))
	var errs []error
	for i, l := range left {
		all, err := readAttempts(ctx, s, l.Folder)
		if err != nil {
			return t.out, err // what is known is not enough to tell uploads apart
		}
		for _, a := range all {
			switch {
			case a.closed:
				continue
			case a.damaged != nil:
				errs = append(errs, a.damaged)
				continue
			}
			attempts[i] = append(attempts[i], a)
			for id := range a.opened {
				t.known[id] = true
			}
		}
	}
	for i, l := range left {
		for _, a := range attempts[i] {
			if err := t.attempt(ctx, l, a); err != nil {
				errs = append(errs, hbackup.E("drop leftover uploads on record in", s.Location().At(storage.Key(l.Folder+a.name)), hbackup.KindOther, err))
			}
		}
	}
	return t.out, errors.Join(errs...)
}

type tidy struct {
	store  storage.Store
	holder storage.Holder
	alone  func(context.Context) (bool, error)
	known  map[string]bool // ids that are on record
	out    Tidied
}

func (t *tidy) attempt(ctx context.Context, l Leftover, a *attempt) error {
	accounted, err := t.dropUnaccounted(ctx, a.unaccounted())
	if err != nil {
		return err
	}
	if accounted {
		t.out.Accounted[a.name] = true
	}
	if l.Resume {
		return nil
	}
	if err := dropAll(ctx, t.holder, a.opened, nil); err != nil {
		return err
	}
	t.out.Dropped += len(a.opened)
	if !accounted {
		return nil
	}
	p, _, err := storage.PermanenceOf(ctx, t.store)
	return closeRecord(ctx, t.store, l.Folder, a.name, a.keys, err == nil && p.Keeps())
}

// dropUnaccounted looks for uploads of the keys that are not on record. Those that
// are there while nobody else is at work, and were there before that was asked,
// belong to the dead.
func (t *tidy) dropUnaccounted(ctx context.Context, keys []storage.Key) (bool, error) {
	before, err := t.unrecorded(ctx, keys)
	if err != nil || len(before) == 0 {
		return err == nil, err
	}
	if alone, err := t.alone(ctx); err != nil || !alone {
		return false, err
	}
	now, err := t.unrecorded(ctx, keys)
	if err != nil {
		return false, err
	}
	for id, u := range now {
		if _, both := before[id]; !both {
			return false, nil // somebody is at work after all
		}
		if err := t.holder.DropUpload(ctx, u); err != nil {
			return false, err
		}
		t.out.Dropped++
	}
	return true, nil
}

func (t *tidy) unrecorded(ctx context.Context, keys []storage.Key) (map[string]storage.Ticket, error) {
	out := map[string]storage.Ticket{}
	for _, key := range keys {
		open, err := t.holder.OpenUploads(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, u := range open {
			if !t.known[u.ID] {
				out[u.ID] = u
			}
		}
	}
	return out, nil
}
