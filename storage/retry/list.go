package retry

import (
	"context"
	"iter"

	"hbackup"
	"hbackup/storage"
)

// List gives the objects under the prefix. After a failure it goes on behind the
// last key; a store that then gives that key or an earlier one once more is at
// fault, and the listing ends with KindCorrupt.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		l := &listing{patience: s.patience("list", storage.Key(prefix)), prefix: prefix, opts: opts, yield: yield}
		for {
			err, stopped := l.walk(ctx)
			switch {
			case stopped || err == nil:
				return
			case !l.again(ctx, err):
				yield(storage.Object{}, l.over(ctx, err))
				return
			}
		}
	}
}

type listing struct {
	*patience
	prefix string
	opts   storage.ListOptions // what is still wanted
	given  bool                // opts.After is a key that was given
	yield  func(storage.Object, error) bool
}

// walk goes through one listing of the store. It reports whether there is nothing
// more to be done: the caller has enough, or has all that he asked for.
func (l *listing) walk(ctx context.Context) (failure error, stopped bool) {
	for obj, err := range l.Store.Store.List(ctx, l.prefix, l.opts) {
		switch {
		case err != nil:
			return err, false
		case l.given && obj.Key <= l.opts.After:
			return hbackup.Errorf("list", l.path, hbackup.KindCorrupt, "the store gave %q after %q", obj.Key, l.opts.After), false
		}
		l.progress()
		l.opts.After, l.given = obj.Key, true
		if !l.yield(obj, nil) {
			return nil, true
		}
		if l.opts.Limit > 0 {
			if l.opts.Limit--; l.opts.Limit == 0 { // and not "no limit"
				return nil, true
			}
		}
	}
	return nil, false
}
