// Package gcsfs gives the benchmark of committers a bucket of Google Cloud
// Storage as Hadoop's connector for it sees it.
//
// The requests of each call are those of the connector's third version, one look
// after the other: a look at a path asks for the object and, when there is none,
// lists below it; a rename looks at the source, the destination and its directory
// and at the source's directory, rewrites the object and deletes the old one; a
// directory is renamed object by object, fifteen at a time. The connector sends
// such requests in batches, which the service counts and carries out one by one.
// For the manifest committer a file is renamed by the service's own move.
// Uploads that are held open are the multipart uploads of the XML API.
package gcsfs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	lib "cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/bench"
	"hbackup/engine"
	"hbackup/storage"
	"hbackup/storage/gcs"
)

// atOnce is how many requests of one batch the connector has under way
// (fs.gs.batch.threads).
const atOnce = 15

// Target is a folder of a bucket.
type Target struct {
	store  *gcs.Store
	bucket *lib.BucketHandle
	meter  *bench.Meter
	name   string // of the bucket
	root   string // of all objects, with a slash behind
}

var _ bench.Target = (*Target)(nil)

// Open gives the folder in the configured place. Nothing is sent.
func Open(ctx context.Context, c gcs.Config, folder string, latency time.Duration) (*Target, error) {
	c.Prefix = strings.TrimPrefix(c.Prefix+"/"+folder, "/")
	t := &Target{meter: bench.NewMeter(latency), name: c.Bucket, root: c.Prefix + "/"}
	c.Wrap = func(inner http.RoundTripper) http.RoundTripper { return t.meter.Transport(inner, kindOf) }
	var err error
	if t.store, err = gcs.New(ctx, c); err != nil {
		return nil, err
	}
	t.bucket = t.store.Client().Bucket(c.Bucket)
	return t, nil
}

// kindOf names a request.
func kindOf(r *http.Request) string {
	q, p, m := r.URL.Query(), r.URL.Path, r.Method
	switch {
	case strings.Contains(p, "/upload/") && q.Has("upload_id"):
		return "chunk"
	case strings.Contains(p, "/upload/"):
		return "insert"
	case !strings.Contains(p, "/storage/v1/b/"):
		return kindOfXML(m, q.Has("uploads"))
	case strings.Contains(p, "/rewriteTo/"):
		return "rewrite"
	case strings.Contains(p, "/moveTo/"):
		return "move"
	case m == http.MethodDelete:
		return "delete"
	case strings.HasSuffix(p, "/o"):
		return "list"
	case q.Get("alt") == "media":
		return "get"
	}
	return "get metadata"
}

func kindOfXML(method string, uploads bool) string {
	switch {
	case uploads && method == http.MethodPost:
		return "create upload"
	case uploads:
		return "list uploads"
	}
	return map[string]string{http.MethodPut: "put part", http.MethodPost: "complete", http.MethodDelete: "abort", http.MethodGet: "get"}[method]
}

func (t *Target) Store() storage.Store   { return t.store }
func (t *Target) Uploads() bench.Uploads { return (*uploads)(t) }
func (t *Target) Meter() *bench.Meter    { return t.meter }
func (t *Target) Close() error           { return t.store.Close() }

// FS gives the connector, with the move for the manifest committer.
func (t *Target) FS(p bench.Protocol) bench.FS {
	return &fileSystem{Target: t, moves: p == bench.Manifest}
}

// Names lists everything in a directory but its own marker.
func (t *Target) Names(ctx context.Context, dir string) ([]string, error) {
	var names []string
	err := t.each(ctx, t.root+dir+"/", "", func(o *lib.ObjectAttrs) {
		names = append(names, strings.TrimPrefix(o.Name, t.root))
	})
	return names, err
}

// each lists the objects whose name begins with prefix, save the one that is
// prefix itself. With a delimiter, folders come as objects with a Prefix only.
func (t *Target) each(ctx context.Context, prefix, delimiter string, f func(*lib.ObjectAttrs)) error {
	q := &lib.Query{Prefix: prefix, Delimiter: delimiter}
	if err := q.SetAttrSelection([]string{"Name", "Size", "Generation"}); err != nil {
		return t.fail("list", prefix, err)
	}
	it := t.bucket.Objects(ctx, q)
	it.PageInfo().MaxSize = 1000
	for {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return t.fail("list", prefix, err)
		}
		if o.Name != prefix {
			f(o)
		}
	}
}

// Clear removes the folder.
func (t *Target) Clear(ctx context.Context) error {
	names := []string{}
	if err := t.each(ctx, t.root, "", func(o *lib.ObjectAttrs) { names = append(names, o.Name) }); err != nil {
		return err
	}
	err := engine.Local(ctx, 64, engine.Each(names), func(ctx context.Context, name string) error {
		return t.remove(ctx, name, 0)
	})
	if derr := t.remove(ctx, t.root, 0); derr != nil {
		err = errors.Join(err, derr)
	}
	for {
		open, uerr := (*uploads)(t).Open(ctx, "")
		if uerr != nil || len(open) == 0 {
			return errors.Join(err, uerr)
		}
		for _, u := range open {
			if uerr := (*uploads)(t).Abort(ctx, u.Path, u.ID); uerr != nil {
				return errors.Join(err, uerr)
			}
		}
	}
}

// remove deletes an object; one that is missing is no error.
func (t *Target) remove(ctx context.Context, name string, generation int64) error {
	h := t.bucket.Object(name)
	if generation != 0 {
		h = h.If(lib.Conditions{GenerationMatch: generation})
	}
	if err := h.Delete(ctx); err != nil && !isMissing(err) {
		return t.fail("delete", name, err)
	}
	return nil
}

func isMissing(err error) bool {
	var answer *googleapi.Error
	return errors.Is(err, lib.ErrObjectNotExist) || errors.As(err, &answer) && answer.Code == http.StatusNotFound
}

func (t *Target) fail(op, name string, err error) error {
	kind := hbackup.KindOther
	if isMissing(err) {
		kind = hbackup.KindNotFound
	}
	return hbackup.E(op, "gs://"+t.name+"/"+name, kind, err)
}

// sorted orders by path.
func sorted(all []bench.Status) []bench.Status {
	slices.SortFunc(all, func(a, b bench.Status) int { return strings.Compare(a.Path, b.Path) })
	return all
}
