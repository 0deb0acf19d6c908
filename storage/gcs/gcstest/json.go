package gcstest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxJSON bounds the JSON of a request.
const maxJSON = 1 << 20

// serveJSON serves the part of the JSON API that moves no content to the server.
// Paths are b, b/BUCKET, b/BUCKET/o, b/BUCKET/o/OBJECT and what goes below.
func (c *call) serveJSON(path string) error {
	seg := strings.Split(path, "/")
	for i, s := range seg {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return invalid("The path is not encoded rightly.")
		}
		seg[i] = plain
	}
	m := c.r.Method
	switch {
	case len(seg) == 1 && seg[0] == "b" && m == http.MethodPost:
		return c.insertBucket()
	case len(seg) < 2 || seg[0] != "b":
		return notFound("Not Found")
	case len(seg) == 2 && m == http.MethodGet:
		return c.getBucket(seg[1])
	case len(seg) < 3 || seg[2] != "o":
		return notFound("Not Found")
	case len(seg) == 3 && m == http.MethodGet:
		return c.list(seg[1])
	case len(seg) == 4 && m == http.MethodGet:
		return c.getObject(seg[1], seg[3])
	case len(seg) == 4 && m == http.MethodDelete:
		return c.deleteObject(seg[1], seg[3])
	case len(seg) == 4 && m == http.MethodPatch:
		return c.patchObject(seg[1], seg[3])
	case len(seg) == 5 && seg[4] == "compose" && m == http.MethodPost:
		return c.compose(seg[1], seg[3])
	case len(seg) == 7 && seg[4] == "moveTo" && seg[5] == "o" && m == http.MethodPost:
		return c.move(seg[1], seg[3], seg[6])
	case len(seg) == 9 && seg[4] == "rewriteTo" && seg[5] == "b" && seg[7] == "o" && m == http.MethodPost:
		return c.rewrite(seg[1], seg[3], seg[6], seg[8])
	case len(seg) <= 4:
		return errMethod
	}
	return notFound("Not Found")
}

// readJSON reads the body of a request; none leaves v as it is.
func (c *call) readJSON(v any) error {
	b, err := io.ReadAll(io.LimitReader(c.r.Body, maxJSON+1))
	switch {
	case err != nil:
		return invalid("The body broke off.")
	case len(b) > maxJSON:
		return invalid("The body is too large.")
	case len(b) == 0:
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return invalid("Parse Error")
	}
	return nil
}

func (c *call) insertBucket() error {
	var in struct{ Name string }
	if err := c.readJSON(&in); err != nil {
		return err
	}
	if in.Name == "" {
		return invalid("The bucket has no name.")
	}
	c.s.mu.Lock()
	_, there := c.s.buckets[in.Name]
	if !there {
		c.s.buckets[in.Name] = &bucket{name: in.Name, created: c.s.opts.Now(), objects: map[string]*object{}}
	}
	c.s.mu.Unlock()
	if there {
		return failure{http.StatusConflict, "conflict", "The bucket exists."}
	}
	return c.getBucket(in.Name)
}

func (c *call) getBucket(name string) error {
	c.s.mu.Lock()
	b, err := c.s.bucket(name)
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	out := map[string]any{
		"kind": "storage#bucket", "id": b.name, "name": b.name, "metageneration": "1", "location": "US", "storageClass": "STANDARD",
		"timeCreated": b.created.UTC().Format(time.RFC3339Nano), "updated": b.created.UTC().Format(time.RFC3339Nano),
	}
	maps.Copy(out, c.s.opts.Attributes)
	if d := c.s.opts.Retention; d > 0 {
		out["retentionPolicy"] = map[string]any{
			"retentionPeriod": strconv.FormatInt(int64(d.Seconds()), 10), "effectiveTime": b.created.UTC().Format(time.RFC3339Nano),
		}
	}
	c.json(http.StatusOK, out)
	return nil
}

// find gives the object that the request asks for and checks its preconditions.
// The lock is held.
func (c *call) find(bucketName, name string, reads bool) (*bucket, *object, error) {
	want, err := c.wanted()
	if err != nil {
		return nil, nil, err
	}
	conds, err := c.conditions("if")
	if err != nil {
		return nil, nil, err
	}
	b, o, err := c.s.object(bucketName, name)
	switch {
	case err != nil:
		return nil, nil, err
	case want >= 0 && want != o.generation:
		return nil, nil, noObject(bucketName, name)
	}
	return b, o, conds.check(o, reads)
}

func (c *call) getObject(bucketName, name string) error {
	c.s.mu.Lock()
	_, o, err := c.find(bucketName, name, true)
	if err != nil {
		c.s.mu.Unlock()
		return err
	}
	if c.get("alt") == "media" {
		return c.media(o) // gives the lock back
	}
	c.s.mu.Unlock()
	c.json(http.StatusOK, o.resource())
	return nil
}

// media sends the content, or the range of it that is asked for. It is called
// with the lock held and gives it back.
func (c *call) media(o *object) error {
	from, n, partial, ok := parseRange(c.r.Header.Get("Range"), o.data.size)
	if !ok {
		c.s.mu.Unlock()
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", o.data.size))
		return failure{http.StatusRequestedRangeNotSatisfiable, "requestedRangeNotSatisfiable", "Request range not satisfiable"}
	}
	body, err := o.data.open(from, n)
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	defer body.Close()
	h := c.w.Header()
	h.Add("X-Goog-Hash", "crc32c="+o.data.crc32c())
	if !o.noMD5 {
		h.Add("X-Goog-Hash", "md5="+o.data.md5Hash())
	}
	h.Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	h.Set("X-Goog-Metageneration", strconv.FormatInt(o.metagen, 10))
	h.Set("X-Goog-Storage-Class", o.class())
	h.Set("X-Goog-Stored-Content-Encoding", "identity")
	h.Set("X-Goog-Stored-Content-Length", strconv.FormatInt(o.data.size, 10))
	h.Set("Last-Modified", o.updated.Format(http.TimeFormat))
	h.Set("Etag", o.etag())
	if h.Set("Content-Type", o.attrs.ContentType); o.attrs.ContentType == "" {
		h.Set("Content-Type", "application/octet-stream")
	}
	h.Set("Content-Length", strconv.FormatInt(n, 10))
	status := http.StatusOK
	if partial {
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, o.data.size))
	}
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		io.Copy(c.w, body) // a client that went away gets nothing
	}
	return nil
}

// parseRange reads a Range header. One that is none of ours means the whole, as
// HTTP wants it; one that lies behind the end is not ok.
func parseRange(s string, size int64) (from, n int64, partial, ok bool) {
	spec, ours := strings.CutPrefix(s, "bytes=")
	a, b, dash := strings.Cut(spec, "-")
	if !ours || !dash {
		return 0, size, false, true
	}
	first, errA := strconv.ParseInt(a, 10, 64)
	last, errB := strconv.ParseInt(b, 10, 64)
	switch {
	case a == "" && errB == nil: // the last bytes
		n = min(last, size)
		return size - n, n, true, n > 0
	case errA != nil || b != "" && (errB != nil || last < first):
		return 0, size, false, true
	case b == "":
		last = size - 1
	}
	last = min(last, size-1)
	return first, last - first + 1, true, first < size
}

func (c *call) deleteObject(bucketName, name string) error {
	c.s.mu.Lock()
	b, o, err := c.find(bucketName, name, false)
	if err == nil {
		err = c.s.kept(o)
	}
	if err == nil {
		b.forget(name)
		o.data.drop()
	}
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// patchObject changes metadata, which raises the metageneration and leaves the
// generation.
func (c *call) patchObject(bucketName, name string) error {
	var in struct {
		ContentType *string
		Metadata    map[string]*string
	}
	if err := c.readJSON(&in); err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	b, o, err := c.find(bucketName, name, false)
	if err != nil {
		return err
	}
	changed := *o
	changed.metagen, changed.updated = o.metagen+1, c.s.opts.Now().UTC()
	if in.ContentType != nil {
		changed.attrs.ContentType = *in.ContentType
	}
	changed.attrs.Metadata = map[string]string{}
	for k, v := range o.attrs.Metadata {
		changed.attrs.Metadata[k] = v
	}
	for k, v := range in.Metadata {
		if delete(changed.attrs.Metadata, k); v != nil {
			changed.attrs.Metadata[k] = *v
		}
	}
	b.objects[name] = &changed
	c.json(http.StatusOK, changed.resource())
	return nil
}

// list gives a page of names in ascending order of their bytes.
func (c *call) list(bucketName string) error {
	const most = 1000
	limit := most
	if c.has("maxResults") {
		n, err := strconv.Atoi(c.get("maxResults"))
		if err != nil || n < 1 {
			return invalid("Invalid value for maxResults.")
		}
		limit = min(n, most)
	}
	after, err := base64.URLEncoding.DecodeString(c.get("pageToken"))
	if err != nil {
		return invalid("Invalid value for pageToken.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	b, err := c.s.bucket(bucketName)
	if err != nil {
		return err
	}
	p := &page{c: c, prefix: c.get("prefix"), delimiter: c.get("delimiter"), end: c.get("endOffset"), after: string(after), limit: limit}
	p.fill(b)
	out := map[string]any{"kind": "storage#objects"}
	if len(p.items) > 0 {
		out["items"] = p.items
	}
	if len(p.folders) > 0 {
		out["prefixes"] = p.folders
	}
	if p.more {
		out["nextPageToken"] = base64.URLEncoding.EncodeToString([]byte(p.after))
	}
	c.json(http.StatusOK, out)
	return nil
}
