// Package s3a gives the benchmark of committers a bucket as Hadoop's S3A sees it.
//
// The requests of each call are those of S3A in Hadoop 3.4, directory markers
// kept: a look at a path is a HEAD and, when that finds nothing, a LIST; a rename
// looks at the source, the destination and its parent, asks for the source's
// metadata, copies, deletes, and looks whether the source's directory needs a
// marker now; renaming a directory lists it, copies ten files at a time and
// deletes 250 with one request.
package s3a

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/bench"
	"hbackup/storage"
	"hbackup/storage/s3"
)

// Target is a folder of a bucket.
type Target struct {
	store  *s3.Store
	client *sdk.Client
	meter  *bench.Meter
	bucket string
	root   string // of all keys, with a slash behind
}

var _ bench.Target = (*Target)(nil)

// Open gives the folder in the configured place. Nothing is sent.
func Open(ctx context.Context, c s3.Config, folder string, latency time.Duration) (*Target, error) {
	c.Prefix = strings.TrimPrefix(c.Prefix+"/"+folder, "/")
	t := &Target{meter: bench.NewMeter(latency), bucket: c.Bucket, root: c.Prefix + "/"}
	c.Wrap = func(inner http.RoundTripper) http.RoundTripper { return t.meter.Transport(inner, kindOf) }
	var err error
	if t.store, err = s3.New(ctx, c); err != nil {
		return nil, err
	}
	t.client = t.store.Client()
	return t, nil
}

// kindOf names a request.
func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch m := r.Method; {
	case q.Has("delete"):
		return "batch delete"
	case q.Has("uploads") && m == http.MethodPost:
		return "create upload"
	case q.Has("uploads"):
		return "list uploads"
	case q.Has("uploadId"):
		return map[string]string{http.MethodPut: "put part", http.MethodPost: "complete", http.MethodDelete: "abort", http.MethodGet: "list parts"}[m]
	case q.Has("list-type"):
		return "list"
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "copy"
	}
	return strings.ToLower(r.Method)
}

func (t *Target) Store() storage.Store       { return t.store }
func (t *Target) FS(bench.Protocol) bench.FS { return (*fileSystem)(t) }
func (t *Target) Uploads() bench.Uploads     { return (*uploads)(t) }
func (t *Target) Meter() *bench.Meter        { return t.meter }
func (t *Target) Close() error               { return t.store.Close() }

// Names lists everything in a directory but its own marker.
func (t *Target) Names(ctx context.Context, dir string) ([]string, error) {
	var names []string
	err := t.each(ctx, t.root+dir+"/", func(key string, _ int64) {
		names = append(names, strings.TrimPrefix(key, t.root))
	})
	return names, err
}

// each lists all objects whose key begins with prefix, save the one that is prefix
// itself.
func (t *Target) each(ctx context.Context, prefix string, f func(key string, size int64)) error {
	return t.list(ctx, prefix, func(key string, size int64) {
		if key != prefix {
			f(key, size)
		}
	})
}

func (t *Target) list(ctx context.Context, prefix string, f func(key string, size int64)) error {
	pages := sdk.NewListObjectsV2Paginator(t.client, &sdk.ListObjectsV2Input{Bucket: &t.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return t.fail("list", prefix, err)
		}
		for _, o := range page.Contents {
			f(aws.ToString(o.Key), aws.ToInt64(o.Size))
		}
	}
	return nil
}

// Clear removes the folder. Objects go before the markers of folders, and what is
// deepest goes first: some stores keep folders.
func (t *Target) Clear(ctx context.Context) error {
	var keys []storage.Key
	markers := []string{t.root}
	err := t.each(ctx, t.root, func(key string, _ int64) {
		if strings.HasSuffix(key, "/") {
			markers = append(markers, key)
		} else {
			keys = append(keys, storage.Key(strings.TrimPrefix(key, t.root)))
		}
	})
	if err != nil {
		return err
	}
	failures, err := t.store.DeleteBatch(ctx, keys)
	if err == nil && len(failures) > 0 {
		err = failures[0].Err
	}
	slices.Sort(markers)
	slices.Reverse(markers)
	for _, m := range markers {
		if _, derr := t.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &t.bucket, Key: &m}); derr != nil && !isMissing(derr) {
			err = errors.Join(err, t.fail("delete", m, derr))
		}
	}
	return errors.Join(err, t.abortAll(ctx))
}

// abortAll ends all open uploads of the folder. It asks again from the start each
// time: not all stores can go on behind a page.
func (t *Target) abortAll(ctx context.Context) error {
	for {
		open, err := (*uploads)(t).Open(ctx, "")
		if err != nil || len(open) == 0 {
			return err
		}
		for _, u := range open {
			if err := (*uploads)(t).Abort(ctx, u.Path, u.ID); err != nil {
				return err
			}
		}
	}
}
