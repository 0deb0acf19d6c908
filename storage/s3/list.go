package s3

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// pageSize is the largest page that S3 gives.
const pageSize = 1000

// List yields the objects under the prefix in ascending order, one request for
// each page. What a listing leaves out might be deleted as garbage or backed up
// again, so a store that repeats keys, goes backwards, gives another number of
// them than it says or does not come to an end is an error and not a shorter
// listing. What a store leaves out in silence cannot be seen here: a backup then
// copies a file once more, and verify reports every file that a manifest names and
// the listing lacks.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.Folders {
		return storage.Folders(func(o storage.ListOptions) iter.Seq2[storage.Object, error] { return s.List(ctx, prefix, o) }, prefix, opts)
	}
	return func(yield func(storage.Object, error) bool) {
		l := &listing{s: s, prefix: s.full(prefix), left: opts.Limit}
		if opts.After != "" {
			l.last = s.full(string(opts.After))
		}
		for !l.done {
			page, err := l.next(ctx)
			if err != nil {
				yield(storage.Object{}, s.failList(ctx, prefix, err))
				return
			}
			for _, obj := range page {
				if !yield(obj, nil) {
					return
				}
			}
		}
	}
}

// failList names the place that was listed.
func (s *Store) failList(ctx context.Context, prefix string, err error) error {
	return s.fail(ctx, "list", storage.Key(prefix), err)
}

// listing is one walk through a bucket.
type listing struct {
	s      *Store
	prefix string // in the bucket
	token  *string
	last   string // the name after which the next one must come
	left   int    // objects that are still wanted; 0 means all
	done   bool
	page   page
}

// next gives the objects of the next page, which may be none.
func (l *listing) next(ctx context.Context) ([]storage.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in := &s3.ListObjectsV2Input{
		Bucket: &l.s.c.Bucket, Prefix: &l.prefix, ContinuationToken: l.token,
		EncodingType: types.EncodingTypeUrl, // names may hold what XML cannot
	}
	if l.token == nil && l.last != "" {
		in.StartAfter = &l.last
	}
	if l.left > 0 && l.left < pageSize {
		in.MaxKeys = aws.Int32(int32(l.left))
	}
	_, err := l.s.client.ListObjectsV2(ctx, in, s3.WithAPIOptions(l.page.into))
	if err != nil && hbackup.KindOf(err) == hbackup.KindOther && l.s.judge(err).kind == hbackup.KindNotFound {
		// There is no bucket, or no S3 at all at the endpoint.
		return nil, hbackup.E("list bucket", "", hbackup.KindUsage, err).WithHint("%s", verdicts["NoSuchBucket"].hint)
	}
	if err != nil {
		var ours *hbackup.Error
		if errors.As(err, &ours) {
			return nil, ours
		}
		return nil, err
	}
	l.s.sawBucket()
	if n := int64(len(l.page.entries)); l.page.count >= 0 && l.page.count != n {
		return nil, corrupt("the store says that a page has %d objects, and names %d", l.page.count, n)
	}
	objects := make([]storage.Object, 0, len(l.page.entries))
	for _, e := range l.page.entries {
		obj, err := l.take(e)
		if err != nil {
			return nil, err
		}
		if obj.Key == "" {
			continue
		}
		objects = append(objects, obj)
		if l.left--; l.left == 0 {
			l.done = true
			return objects, nil
		}
	}
	return objects, l.turn()
}

// turn prepares for the next page.
func (l *listing) turn() error {
	switch {
	case !l.page.truncated:
		l.done = true
	case l.page.token == "":
		return corrupt("the store says that there is more, but not where")
	case len(l.page.entries) == 0 && l.token != nil && *l.token == l.page.token:
		return corrupt("the store gives the same empty page again")
	default:
		token := l.page.token
		l.token = &token
	}
	return nil
}

// take checks an entry and turns it into an object; one without a key is a
// folder marker.
func (l *listing) take(e entry) (storage.Object, error) {
	switch {
	case !strings.HasPrefix(e.name, l.prefix):
		return storage.Object{}, corrupt("the store gave %q, which does not begin with %q", e.name, l.prefix)
	case e.name <= l.last && l.last != "":
		return storage.Object{}, corrupt("the store gave %q after %q", e.name, l.last)
	}
	l.last = e.name
	if strings.HasSuffix(e.name, "/") {
		return storage.Object{}, nil
	}
	key := e.name
	if p := l.s.c.Prefix; p != "" {
		key = strings.TrimPrefix(key, p+"/")
	}
	return storage.Object{Key: storage.Key(key), Size: e.size, Modified: e.modified}, nil
}

func corrupt(format string, args ...any) error {
	e := hbackup.Errorf("read listing", "", hbackup.KindCorrupt, format, args...)
	return e.WithHint("do not trust this store: its listings are wrong")
}
