package gcstest

import (
	"bufio"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// serveUpload serves b/BUCKET/o of the upload paths.
func (c *call) serveUpload(path string) error {
	seg := strings.Split(path, "/")
	if len(seg) != 3 || seg[0] != "b" || seg[2] != "o" {
		return notFound("Not Found")
	}
	bucketName, err := url.PathUnescape(seg[1])
	if err != nil {
		return invalid("The path is not encoded rightly.")
	}
	if c.has("upload_id") {
		return c.resume(c.get("upload_id"))
	}
	if c.r.Method != http.MethodPost {
		return errMethod
	}
	switch c.get("uploadType") {
	case "media":
		return c.insert(bucketName, attrs{ContentType: c.r.Header.Get("Content-Type")}, c.r.Body)
	case "multipart":
		return c.insertMultipart(bucketName)
	case "resumable":
		return c.begin(bucketName)
	}
	return invalid("Unknown uploadType.")
}

// insertMultipart reads a body of two parts: metadata and content.
func (c *call) insertMultipart(bucketName string) error {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return invalid("The body is not multipart/related.")
	}
	parts := multipart.NewReader(bufio.NewReaderSize(c.r.Body, 64<<10), params["boundary"])
	meta, err := parts.NextPart()
	if err != nil {
		return invalid("The metadata is missing.")
	}
	var a attrs
	if err := json.NewDecoder(io.LimitReader(meta, maxJSON)).Decode(&a); err != nil {
		return invalid("Parse Error")
	}
	media, err := parts.NextPart()
	if err != nil {
		return invalid("The content is missing.")
	}
	if a.ContentType == "" {
		a.ContentType = media.Header.Get("Content-Type")
	}
	return c.insert(bucketName, a, &oneOf{parts, media})
}

// oneOf is the last part of a body: it ends well only when the whole body does.
type oneOf struct {
	parts *multipart.Reader
	last  io.Reader
}

func (o *oneOf) Read(p []byte) (int, error) {
	n, err := o.last.Read(p)
	if err == io.EOF {
		if _, more := o.parts.NextPart(); more != io.EOF {
			err = invalid("The body does not end after the content.")
		}
	}
	return n, err
}

// target is where an upload goes.
type target struct {
	bucket, name string
	conds        conditions
	attrs        attrs
}

// target takes it from the request.
func (c *call) target(bucketName string, a attrs) (target, error) {
	t := target{bucket: bucketName, name: a.Name, attrs: a}
	if c.has("name") {
		t.name = c.get("name")
	}
	if err := checkName(t.name); err != nil {
		return t, err
	}
	var err error
	if t.conds, err = c.conditions("if"); err != nil {
		return t, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	_, err = c.s.bucket(bucketName)
	return t, err
}

// insert takes the content with one request.
func (c *call) insert(bucketName string, a attrs, body io.Reader) error {
	t, err := c.target(bucketName, a)
	if err != nil {
		return err
	}
	data := c.s.newBlob()
	if _, err := io.Copy(data, body); err != nil {
		data.drop()
		return invalid("The body broke off: %v", err)
	}
	o, err := c.s.finalise(t, data, c.r.Header)
	if err != nil {
		data.drop()
		return err
	}
	c.json(http.StatusOK, o.resource())
	return nil
}

// finalise checks what was announced of a content and makes it visible.
func (s *Server) finalise(t target, data *blob, h http.Header) (*object, error) {
	if err := data.seal(); err != nil {
		return nil, err
	}
	sums := hashes(h)
	for _, want := range []struct{ value, is, name string }{
		{t.attrs.CRC32C, data.crc32c(), "crc32c"},
		{t.attrs.MD5Hash, data.md5Hash(), "MD5 hash"},
		{sums["crc32c"], data.crc32c(), "crc32c"},
		{sums["md5"], data.md5Hash(), "MD5 hash"},
		{h.Get("Content-Md5"), data.md5Hash(), "MD5 hash"},
	} {
		if want.value != "" && want.value != want.is {
			return nil, invalid("Provided %s %q doesn't match calculated %s %q.", want.name, want.value, want.name, want.is)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucket(t.bucket)
	if err != nil {
		return nil, err
	}
	if err := t.conds.check(b.objects[t.name], false); err != nil {
		return nil, err
	}
	if err := s.kept(b.objects[t.name]); err != nil {
		return nil, err
	}
	return s.put(b, t.name, data, t.attrs), nil
}

// hashes reads X-Goog-Hash, which may come many times and hold many values.
func hashes(h http.Header) map[string]string {
	out := map[string]string{}
	for _, line := range h.Values("X-Goog-Hash") {
		for item := range strings.SplitSeq(line, ",") {
			if name, value, ok := strings.Cut(strings.TrimSpace(item), "="); ok {
				out[name] = value
			}
		}
	}
	return out
}
