package gcstest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// quantum is the size of which every chunk but the last has a multiple, and up
// to a multiple of which the bytes of a broken request are kept.
const quantum = 256 << 10

// session is a resumable upload.
type session struct {
	t     target
	began time.Time

	mu    sync.Mutex // one request at a time
	data  *blob
	total int64   // -1 as long as it was not declared
	done  *object // once it is finalised
	over  error   // once it has failed or was cancelled
}

// begin opens a session.
func (c *call) begin(bucketName string) error {
	var a attrs
	if err := c.readJSON(&a); err != nil {
		return err
	}
	if a.ContentType == "" {
		a.ContentType = c.r.Header.Get("X-Upload-Content-Type")
	}
	t, err := c.target(bucketName, a)
	if err != nil {
		return err
	}
	total := int64(-1)
	if v := c.r.Header.Get("X-Upload-Content-Length"); v != "" {
		if total, err = strconv.ParseInt(v, 10, 64); err != nil || total < 0 {
			return invalid("Invalid X-Upload-Content-Length.")
		}
	}
	id := rand.Text() + rand.Text()
	c.s.mu.Lock()
	b, err := c.s.bucket(bucketName)
	if err == nil {
		err = t.conds.check(b.objects[t.name], false)
	}
	if err == nil {
		c.s.sessions[id] = &session{t: t, began: c.s.opts.Now(), data: c.s.newBlob(), total: total}
	}
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	c.w.Header().Set("Location", fmt.Sprintf("%s://%s/upload/storage/v1/b/%s/o?uploadType=resumable&name=%s&upload_id=%s",
		scheme, c.r.Host, url.PathEscape(bucketName), url.QueryEscape(t.name), id))
	c.w.Header().Set("X-GUploader-UploadID", id)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// resume serves a request on a session.
func (c *call) resume(id string) error {
	c.s.mu.Lock()
	sess := c.s.sessions[id]
	if sess != nil && c.s.opts.Now().Sub(sess.began) > c.s.opts.SessionLifetime {
		delete(c.s.sessions, id)
		sess = nil
	}
	c.s.mu.Unlock()
	if sess == nil {
		return notFound("The upload session does not exist.")
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	switch {
	case sess.over != nil:
		return sess.over
	case c.r.Method == http.MethodDelete && sess.done == nil:
		sess.end(errCancelled)
		return sess.over
	case c.r.Method == http.MethodDelete:
		return errGone // what is visible is not cancelled
	case c.r.Method != http.MethodPut && c.r.Method != http.MethodPost:
		return errMethod
	case sess.done != nil:
		io.Copy(io.Discard, c.r.Body)
		c.json(http.StatusOK, sess.done.resource())
		return nil
	}
	r, err := parseContentRange(c.r)
	if err != nil {
		return err
	}
	if err := sess.take(c, r); err != nil {
		return err
	}
	if sess.total < 0 || sess.data.size < sess.total {
		c.incomplete(sess.data.size)
		return nil
	}
	o, err := c.s.finalise(sess.t, sess.data, c.r.Header)
	if err != nil {
		why := errGone
		if errors.Is(err, errCondition) {
			why = errCondition
		}
		sess.end(why)
		return err
	}
	sess.done, sess.data = o, nil
	c.json(http.StatusOK, o.resource())
	return nil
}

// end gives the session up.
func (sess *session) end(why failure) {
	sess.over = why
	sess.data.drop()
	sess.data = nil
}

// contentRange is what a request on a session says of its body.
type contentRange struct {
	from, to int64 // to is behind the last byte; both 0 for a question
	total    int64 // -1 when it is not declared
	question bool
	whole    bool // there was no header: the body is all from the first byte on
}

// parseContentRange reads "bytes FROM-LAST/TOTAL", "bytes FROM-LAST/*", "bytes
// */TOTAL" and "bytes */*".
func parseContentRange(r *http.Request) (contentRange, error) {
	h := r.Header.Get("Content-Range")
	bad := invalid("Failed to parse Content-Range header.")
	if h == "" {
		return contentRange{total: -1, whole: true}, nil
	}
	spec, ok := strings.CutPrefix(h, "bytes ")
	span, total, slash := strings.Cut(spec, "/")
	if !ok || !slash {
		return contentRange{}, bad
	}
	out := contentRange{total: -1}
	var err error
	if total != "*" {
		if out.total, err = strconv.ParseInt(total, 10, 64); err != nil || out.total < 0 {
			return contentRange{}, bad
		}
	}
	if span == "*" {
		out.question = true
		return out, nil
	}
	first, last, dash := strings.Cut(span, "-")
	from, errA := strconv.ParseInt(first, 10, 64)
	to, errB := strconv.ParseInt(last, 10, 64)
	if !dash || errA != nil || errB != nil || from < 0 || to < from || to == math.MaxInt64 || out.total >= 0 && to >= out.total {
		return contentRange{}, bad
	}
	out.from, out.to = from, to+1
	if r.ContentLength >= 0 && r.ContentLength != out.to-out.from {
		return contentRange{}, invalid("Content-Length and Content-Range do not agree.")
	}
	return out, nil
}

// take stores what the request brings. When it gives nil the request was right
// and whole.
func (sess *session) take(c *call, r contentRange) error {
	switch {
	case r.total >= 0 && sess.total >= 0 && r.total != sess.total:
		return invalid("The total size was %d and cannot become %d.", sess.total, r.total)
	case r.total >= 0 && r.total < sess.data.size:
		return invalid("The total size %d is less than what is stored, %d.", r.total, sess.data.size)
	case r.question:
		// The declared total holds from now on only when it is reached: a question
		// changes nothing.
		if r.total == sess.data.size {
			sess.total = r.total
		}
		return nil
	case r.whole:
		return sess.takeWhole(c)
	case r.total < 0 && (r.to-r.from)%quantum != 0 && r.to != sess.total:
		return invalid("A chunk that is not the last one must have a multiple of %d bytes.", quantum)
	case r.from > sess.data.size:
		return invalid("Bytes from %d on were sent; the next one is %d.", r.from, sess.data.size)
	}
	skip := min(sess.data.size, r.to) - r.from
	if _, err := io.CopyN(io.Discard, c.r.Body, skip); err != nil {
		return invalid("The body broke off.")
	}
	if r.to <= sess.data.size {
		return nil // all of it is there already
	}
	if err := sess.store(c.r.Body, r.to-sess.data.size); err != nil {
		return err
	}
	if r.total >= 0 {
		sess.total = r.total
	}
	return nil
}

// takeWhole stores a body that is all there is.
func (sess *session) takeWhole(c *call) error {
	if sess.data.size > 0 {
		return invalid("The first bytes are there already; say where the body begins.")
	}
	whole := c.s.newBlob()
	if _, err := io.Copy(whole, c.r.Body); err != nil {
		whole.drop()
		return invalid("The body broke off.")
	}
	if sess.total >= 0 && sess.total != whole.size {
		whole.drop()
		return invalid("%d bytes were announced.", sess.total)
	}
	sess.data.drop()
	sess.data, sess.total = whole, whole.size
	return nil
}

// store appends n bytes. Of a body that breaks off it keeps whole quanta, as the
// service does.
func (sess *session) store(body io.Reader, n int64) error {
	buf := make([]byte, quantum)
	for n > 0 {
		want := min(n, int64(len(buf)))
		m, err := io.ReadFull(body, buf[:want])
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return invalid("The body ended too early, after %d of %d bytes of a piece.", m, want)
			}
			return invalid("The body broke off.")
		}
		if _, err := sess.data.Write(buf[:want]); err != nil {
			return err
		}
		n -= want
	}
	if m, _ := body.Read(buf[:1]); m > 0 {
		return invalid("The body is longer than announced.")
	}
	return nil
}

// incomplete says how far the upload is, in the dialect that the client wants.
func (c *call) incomplete(stored int64) {
	if stored > 0 {
		c.w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", stored-1))
	}
	if c.r.Header.Get("X-Guploader-No-308") == "yes" {
		c.w.Header().Set("X-Http-Status-Code-Override", "308")
		c.w.WriteHeader(http.StatusOK)
		return
	}
	c.w.WriteHeader(http.StatusPermanentRedirect)
}
