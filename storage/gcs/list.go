package gcs

import (
	"context"
	"errors"
	"iter"
	"strings"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/storage"
)

// pageSize is the largest page that the service gives.
const pageSize = 1000

// List yields the objects under the prefix in ascending order, one request for
// each page. What a listing leaves out might be deleted as garbage or backed up
// again, so a store that repeats keys or goes backwards is an error and not a
// shorter listing.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.Folders {
		return storage.Folders(func(o storage.ListOptions) iter.Seq2[storage.Object, error] { return s.List(ctx, prefix, o) }, prefix, opts)
	}
	return func(yield func(storage.Object, error) bool) {
		l, err := s.newListing(ctx, prefix, opts)
		for err == nil {
			var obj storage.Object
			if obj, err = l.next(); err != nil || obj.Key == "" {
				continue // a folder marker has no key, nor has a temporary object
			}
			if !yield(obj, nil) {
				return
			}
			if l.left--; l.left == 0 {
				return
			}
		}
		if !errors.Is(err, iterator.Done) {
			yield(storage.Object{}, s.fail(ctx, "list", storage.Key(prefix), err))
		}
	}
}

// listing is one walk through a bucket.
type listing struct {
	s      *Store
	ctx    context.Context
	it     *gcs.ObjectIterator
	prefix string // in the bucket
	skip   string // the name behind which the listing begins; the service gives it, too
	last   string // the name after which the next one must come
	left   int    // objects that are still wanted; 0 or less means all
}

func (s *Store) newListing(ctx context.Context, prefix string, opts storage.ListOptions) (*listing, error) {
	l := &listing{s: s, ctx: ctx, prefix: s.full(prefix), left: opts.Limit}
	q := &gcs.Query{Prefix: l.prefix, Projection: gcs.ProjectionNoACL}
	if err := q.SetAttrSelection([]string{"Name", "Size", "Updated"}); err != nil {
		return nil, err
	}
	if opts.After != "" {
		l.skip = s.full(string(opts.After))
		q.StartOffset = l.skip
	}
	l.it = s.client.Bucket(s.c.Bucket).Objects(ctx, q)
	if l.it.PageInfo().MaxSize = pageSize; l.left > 0 {
		l.it.PageInfo().MaxSize = min(pageSize, l.left+1) // with the one that is skipped
	}
	return l, nil
}

// next gives the next object, without a key if it is none that can be asked for.
func (l *listing) next() (storage.Object, error) {
	if err := l.ctx.Err(); err != nil {
		return storage.Object{}, err
	}
	attrs, err := l.it.Next()
	if err != nil {
		if errors.Is(err, iterator.Done) {
			l.s.sawBucket()
		}
		return storage.Object{}, err
	}
	name := attrs.Name
	switch {
	case !strings.HasPrefix(name, l.prefix):
		return storage.Object{}, corrupt("the store gave %q, which does not begin with %q", name, l.prefix)
	case name < l.skip:
		return storage.Object{}, corrupt("the store gave %q, which comes before %q", name, l.skip)
	case name <= l.last && l.last != "":
		return storage.Object{}, corrupt("the store gave %q after %q", name, l.last)
	}
	l.last = name
	key := storage.Key(name)
	if p := l.s.c.Prefix; p != "" {
		key = storage.Key(strings.TrimPrefix(name, p+"/"))
	}
	if strings.HasSuffix(name, "/") || name == l.skip || inTempDir(key) {
		return storage.Object{}, nil
	}
	return storage.Object{Key: key, Size: attrs.Size, Modified: attrs.Updated}, nil
}

func corrupt(format string, args ...any) error {
	e := hbackup.Errorf("read listing", "", hbackup.KindCorrupt, format, args...)
	return e.WithHint("do not trust this store: its listings are wrong")
}
