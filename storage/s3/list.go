package s3

import (
	"context"
	"iter"
	"net/url"
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
// again, so a store that repeats keys, goes backwards or does not come to an end
// is an error and not a shorter listing.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
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
	out, err := l.s.client.ListObjectsV2(ctx, in)
	if err != nil && l.s.judge(err).kind == hbackup.KindNotFound {
		// There is no bucket, or no S3 at all at the endpoint.
		return nil, hbackup.E("list bucket", "", hbackup.KindUsage, err).WithHint("%s", verdicts["NoSuchBucket"].hint)
	}
	if err != nil {
		return nil, err
	}
	if out.IsTruncated == nil && out.Name == nil {
		return nil, corrupt("the answer is no listing") // an empty one would look like an empty place
	}
	l.s.sawBucket()
	objects := make([]storage.Object, 0, len(out.Contents))
	for _, entry := range out.Contents {
		obj, err := l.take(entry, out.EncodingType)
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
	return objects, l.turn(out)
}

// turn prepares for the page behind out.
func (l *listing) turn(out *s3.ListObjectsV2Output) error {
	switch {
	case !aws.ToBool(out.IsTruncated):
		l.done = true
	case aws.ToString(out.NextContinuationToken) == "":
		return corrupt("the store says that there is more, but not where")
	case len(out.Contents) == 0 && l.token != nil && *l.token == *out.NextContinuationToken:
		return corrupt("the store gives the same empty page again")
	default:
		l.token = out.NextContinuationToken
	}
	return nil
}

// take checks an entry and turns it into an object; one without a key is a
// folder marker.
func (l *listing) take(entry types.Object, encoding types.EncodingType) (storage.Object, error) {
	name := aws.ToString(entry.Key)
	if encoding == types.EncodingTypeUrl {
		plain, err := url.QueryUnescape(name)
		if err != nil {
			return storage.Object{}, corrupt("the name %q is not encoded as announced", name)
		}
		name = plain
	}
	switch {
	case !strings.HasPrefix(name, l.prefix):
		return storage.Object{}, corrupt("the store gave %q, which does not begin with %q", name, l.prefix)
	case name <= l.last && l.last != "":
		return storage.Object{}, corrupt("the store gave %q after %q", name, l.last)
	case entry.Size == nil:
		return storage.Object{}, corrupt("the store gave no size of %q", name)
	}
	l.last = name
	if strings.HasSuffix(name, "/") {
		return storage.Object{}, nil
	}
	key := name
	if p := l.s.c.Prefix; p != "" {
		key = strings.TrimPrefix(name, p+"/")
	}
	return describe(storage.Key(key), *entry.Size, nil, entry.LastModified), nil
}

func corrupt(format string, args ...any) error {
	e := hbackup.Errorf("read listing", "", hbackup.KindCorrupt, format, args...)
	return e.WithHint("do not trust this store: its listings are wrong")
}
