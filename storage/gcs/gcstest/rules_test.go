package gcstest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client sends single requests, as no library would.
type client struct {
	*testing.T
	*Server
	now time.Time
}

func newClient(t *testing.T, o Options) *client {
	c := &client{T: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.Buckets, o.Now = []string{"b"}, func() time.Time { return c.now }
	s, err := Start("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Server = s
	return c
}

// do gives the answer to one request. Headers are pairs.
func (c *client) do(method, path string, body []byte, headers ...string) (int, http.Header, string) {
	c.Helper()
	if !strings.Contains(path, "://") {
		path = c.Endpoint() + path
	}
	req, err := http.NewRequestWithContext(c.Context(), method, path, bytes.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// want sends a request and checks the status of its answer.
func (c *client) want(status int, method, path string, body []byte, headers ...string) (http.Header, string) {
	c.Helper()
	got, h, text := c.do(method, path, body, headers...)
	if got != status {
		c.Fatalf("%s %s %v: status %d, want %d: %s", method, path, headers, got, status, text)
	}
	return h, text
}

// put stores an object and gives its generation.
func (c *client) put(name, content string) string {
	c.Helper()
	_, text := c.want(200, "POST", "/upload/storage/v1/b/b/o?uploadType=media&name="+name, []byte(content))
	return field(c.T, text, "generation")
}

func field(t *testing.T, text, name string) string {
	t.Helper()
	var in map[string]any
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return fmt.Sprint(in[name])
}

func (c *client) has(name, content string) {
	c.Helper()
	if _, got := c.want(200, "GET", "/storage/v1/b/b/o/"+name+"?alt=media", nil); got != content {
		c.Fatalf("%s holds %d bytes, want %d", name, len(got), len(content))
	}
}

func (c *client) hasNot(name string) {
	c.Helper()
	c.want(404, "GET", "/storage/v1/b/b/o/"+name, nil)
}

func (c *client) session(query string) string {
	c.Helper()
	h, _ := c.want(200, "POST", "/upload/storage/v1/b/b/o?uploadType=resumable&name=o"+query, nil)
	return h.Get("Location")
}

func crcOf(b []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli)))
}

var (
	one = bytes.Repeat([]byte("1"), quantum)
	two = append(bytes.Clone(one), "the rest"...)
)

func TestSession(t *testing.T) {
	c := newClient(t, Options{})
	at := c.session("")
	c.hasNot("o")
	h, _ := c.want(308, "PUT", at, nil, "Content-Range", "bytes */*")
	if h.Get("Range") != "" {
		t.Errorf("an empty session has %q", h.Get("Range"))
	}
	c.want(400, "PUT", at, one[:100], "Content-Range", "bytes 0-99/*")                               // not a quantum
	c.want(400, "PUT", at, one, "Content-Range", fmt.Sprintf("bytes %d-%d/*", quantum, 2*quantum-1)) // a gap
	c.want(400, "PUT", at, one[:5], "Content-Range", "bytes 0-9/10")                                 // lengths that differ
	c.want(400, "PUT", at, nil, "Content-Range", "bytes nonsense")                                   //
	h, _ = c.want(308, "PUT", at, one, "Content-Range", fmt.Sprintf("bytes 0-%d/*", quantum-1))      //
	h2, _ := c.want(200, "PUT", at, nil, "Content-Range", "bytes */*", "X-GUploader-No-308", "yes")  // the other dialect
	h3, _ := c.want(308, "PUT", at, one, "Content-Range", fmt.Sprintf("bytes 0-%d/*", quantum-1))    // again: skipped
	h4, _ := c.want(308, "PUT", at, nil, "Content-Range", fmt.Sprintf("bytes */%d", len(two)))       // a total that is not reached
	want := fmt.Sprintf("bytes=0-%d", quantum-1)
	for _, h := range []http.Header{h, h2, h3, h4} {
		if h.Get("Range") != want {
			t.Errorf("the session has %q, want %q", h.Get("Range"), want)
		}
	}
	if h2.Get("X-Http-Status-Code-Override") != "308" {
		t.Error("no 308 in the other dialect")
	}
	c.hasNot("o")
	last := fmt.Sprintf("bytes %d-%d/%d", quantum, len(two)-1, len(two))
	_, first := c.want(200, "PUT", at, two[quantum:], "Content-Range", last, "X-Goog-Hash", "crc32c="+crcOf(two))
	c.has("o", string(two))
	_, again := c.want(200, "PUT", at, nil, "Content-Range", "bytes */*")
	if first != again {
		t.Error("a finalised session gives another answer")
	}
	c.want(410, "DELETE", at, nil)
	c.has("o", string(two))
}

func TestSessionThatEndsBadly(t *testing.T) {
	whole := fmt.Sprintf("bytes 0-%d/%d", len(two)-1, len(two))
	t.Run("cancelled", func(t *testing.T) {
		c := newClient(t, Options{})
		at := c.session("")
		c.want(499, "DELETE", at, nil)
		c.want(499, "PUT", at, two, "Content-Range", whole)
		c.hasNot("o")
	})
	t.Run("wrong checksum", func(t *testing.T) {
		c := newClient(t, Options{})
		at := c.session("")
		c.want(400, "PUT", at, two, "Content-Range", whole, "X-Goog-Hash", "crc32c="+crcOf(one))
		c.want(410, "PUT", at, two, "Content-Range", whole)
		c.hasNot("o")
	})
	t.Run("condition fails at the end", func(t *testing.T) {
		c := newClient(t, Options{})
		at := c.session("&ifGenerationMatch=0")
		c.put("o", "rival")
		c.want(412, "PUT", at, two, "Content-Range", whole)
		c.want(412, "PUT", at, two, "Content-Range", whole)
		c.has("o", "rival")
	})
	t.Run("condition fails at the beginning", func(t *testing.T) {
		c := newClient(t, Options{})
		c.put("o", "rival")
		c.want(412, "POST", "/upload/storage/v1/b/b/o?uploadType=resumable&name=o&ifGenerationMatch=0", nil)
	})
	t.Run("expired", func(t *testing.T) {
		c := newClient(t, Options{})
		at := c.session("")
		c.now = c.now.Add(8 * 24 * time.Hour)
		c.want(404, "PUT", at, two, "Content-Range", whole)
		c.hasNot("o")
	})
	t.Run("unknown", func(t *testing.T) {
		c := newClient(t, Options{})
		c.want(404, "PUT", "/upload/storage/v1/b/b/o?upload_id=x", two, "Content-Range", whole)
	})
}

// Conditions hold on every verb.
func TestConditions(t *testing.T) {
	for _, verb := range []struct {
		name, method, path string
		ok, refused        int
	}{
		{"read", "GET", "/storage/v1/b/b/o/o?alt=media", 200, 304},
		{"stat", "GET", "/storage/v1/b/b/o/o?", 200, 304},
		{"patch", "PATCH", "/storage/v1/b/b/o/o?", 200, 412},
		{"put", "POST", "/upload/storage/v1/b/b/o?uploadType=media&name=o", 200, 412},
		{"delete", "DELETE", "/storage/v1/b/b/o/o?", 204, 412},
	} {
		t.Run(verb.name, func(t *testing.T) {
			c := newClient(t, Options{})
			gen := c.put("o", "content")
			for query, status := range map[string]int{
				"&ifGenerationMatch=1": 412, "&ifGenerationMatch=0": 412, "&ifMetagenerationMatch=2": 412,
				"&ifGenerationNotMatch=" + gen: verb.refused, "&ifMetagenerationNotMatch=1": verb.refused,
				"&ifGenerationMatch=x": 400, "&ifGenerationMatch=-1": 400,
			} {
				c.want(status, verb.method, verb.path+query, nil)
			}
			c.has("o", "content")
			c.want(verb.ok, verb.method, verb.path+"&ifGenerationMatch="+gen+"&ifMetagenerationMatch=1", nil)
		})
	}
}

func TestGenerations(t *testing.T) {
	c := newClient(t, Options{})
	first := c.put("o", "1")
	second := c.put("o", "22")
	if first >= second {
		t.Errorf("generation %s, then %s", first, second)
	}
	c.want(404, "GET", "/storage/v1/b/b/o/o?alt=media&generation="+first, nil)
	c.want(200, "GET", "/storage/v1/b/b/o/o?alt=media&generation="+second, nil)
	c.want(404, "DELETE", "/storage/v1/b/b/o/o?generation="+first, nil)
	c.has("o", "22")
	_, text := c.want(200, "PATCH", "/storage/v1/b/b/o/o", []byte(`{"metadata":{"a":"b"}}`))
	if field(t, text, "generation") != second || field(t, text, "metageneration") != "2" {
		t.Errorf("after a patch: %s", text)
	}
}

func TestRanges(t *testing.T) {
	c := newClient(t, Options{})
	c.put("o", "0123456789")
	c.put("empty", "")
	for _, tc := range []struct {
		name, ask string
		status    int
		want      string
	}{
		{"o", "bytes=2-4", 206, "234"},
		{"o", "bytes=7-", 206, "789"},
		{"o", "bytes=-2", 206, "89"},
		{"o", "bytes=8-100", 206, "89"},
		{"o", "bytes=10-", 416, ""},
		{"o", "bytes=nonsense", 200, "0123456789"},
		{"o", "bytes=4-2", 200, "0123456789"},
		{"empty", "bytes=0-", 416, ""},
		{"empty", "", 200, ""},
	} {
		status, _, text := c.do("GET", "/storage/v1/b/b/o/"+tc.name+"?alt=media", nil, "Range", tc.ask)
		if status != tc.status || status < 300 && text != tc.want {
			t.Errorf("%s %q: %d %q, want %d %q", tc.name, tc.ask, status, text, tc.status, tc.want)
		}
	}
}

func TestComposeAndMove(t *testing.T) {
	c := newClient(t, Options{})
	a := c.put("a", "first ")
	c.put("z", "second")
	sources := func(n int) []byte {
		return []byte(`{"sourceObjects":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, n), ",") + `]}`)
	}
	c.want(400, "POST", "/storage/v1/b/b/o/c/compose", sources(33))
	c.want(400, "POST", "/storage/v1/b/b/o/c/compose", sources(0))
	c.want(412, "POST", "/storage/v1/b/b/o/c/compose", []byte(`{"sourceObjects":[{"name":"a","objectPreconditions":{"ifGenerationMatch":"1"}}]}`))
	c.want(404, "POST", "/storage/v1/b/b/o/c/compose", []byte(`{"sourceObjects":[{"name":"a"},{"name":"none"}]}`))
	c.want(400, "POST", "/storage/v1/b/b/o/c/compose", []byte(`{"destination":{"crc32c":"AAAAAA=="},"sourceObjects":[{"name":"a"}]}`))
	c.hasNot("c")
	c.want(200, "POST", "/storage/v1/b/b/o/c/compose?ifGenerationMatch=0", []byte(`{"sourceObjects":[{"name":"a"},{"name":"z"}]}`))
	c.has("c", "first second")
	c.want(412, "POST", "/storage/v1/b/b/o/c/compose?ifGenerationMatch=0", sources(1))

	c.want(412, "POST", "/storage/v1/b/b/o/a/moveTo/o/c?ifGenerationMatch=0", nil)
	c.want(412, "POST", "/storage/v1/b/b/o/a/moveTo/o/d?ifSourceGenerationMatch=1", nil)
	c.want(200, "POST", "/storage/v1/b/b/o/a/moveTo/o/d?ifGenerationMatch=0&ifSourceGenerationMatch="+a, nil)
	c.hasNot("a")
	c.has("d", "first ")
	c.want(404, "POST", "/storage/v1/b/b/o/a/moveTo/o/d", nil)
}

func TestRewrite(t *testing.T) {
	c := newClient(t, Options{})
	a := c.put("a", "first")
	c.put("taken", "old")
	c.want(404, "POST", "/storage/v1/b/b/o/none/rewriteTo/b/b/o/c", nil)
	c.want(404, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/other/o/c", nil)
	c.want(404, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/b/o/c?sourceGeneration=1", nil)
	c.want(412, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/b/o/c?ifSourceGenerationMatch=1", nil)
	c.want(412, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/b/o/taken?ifGenerationMatch=0", nil)
	c.hasNot("c")
	c.has("taken", "old")
	_, text := c.want(200, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/b/o/c?ifGenerationMatch=0&sourceGeneration="+a, nil)
	if field(t, text, "done") != "true" || field(t, text, "totalBytesRewritten") != "5" {
		t.Error(text)
	}
	c.has("a", "first")
	c.has("c", "first")
	c.want(200, "POST", "/storage/v1/b/b/o/a/rewriteTo/b/b/o/a", nil) // over itself, a new generation
	c.has("a", "first")
}

func TestListing(t *testing.T) {
	c := newClient(t, Options{})
	for _, name := range []string{"b/1", "a", "b/2", "b/3", "b0", "c"} {
		c.put(strings.ReplaceAll(name, "/", "%2F"), "")
	}
	walk := func(query string) string {
		var got []string
		for token := ""; ; {
			_, text := c.want(200, "GET", "/storage/v1/b/b/o?maxResults=2"+query+"&pageToken="+token, nil)
			var page struct {
				Items         []struct{ Name string }
				Prefixes      []string
				NextPageToken string
			}
			if err := json.Unmarshal([]byte(text), &page); err != nil {
				t.Fatal(err)
			}
			if n := len(page.Items) + len(page.Prefixes); n > 2 || n == 0 && page.NextPageToken != "" {
				t.Fatalf("a page of %d", n)
			}
			for _, i := range page.Items {
				got = append(got, i.Name)
			}
			got = append(got, page.Prefixes...)
			if token = page.NextPageToken; token == "" {
				return strings.Join(got, " ")
			}
		}
	}
	for query, want := range map[string]string{
		"":                           "a b/1 b/2 b/3 b0 c",
		"&prefix=b":                  "b/1 b/2 b/3 b0",
		"&prefix=b/":                 "b/1 b/2 b/3",
		"&delimiter=/":               "a b/ b0 c",
		"&startOffset=b/2":           "b/2 b/3 b0 c",
		"&startOffset=b&endOffset=c": "b/1 b/2 b/3 b0",
		"&prefix=x":                  "",
	} {
		if got := walk(query); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
	c.want(400, "GET", "/storage/v1/b/b/o?maxResults=0", nil)
	c.want(400, "GET", "/storage/v1/b/b/o?pageToken=%25", nil)
	c.want(404, "GET", "/storage/v1/b/other/o", nil)
}

func TestMultipartOfXML(t *testing.T) {
	c := newClient(t, Options{})
	between := func(text, from, to string) string {
		_, rest, _ := strings.Cut(text, from)
		value, _, _ := strings.Cut(rest, to)
		return value
	}
	big := bytes.Repeat([]byte("x"), minPart)
	_, text := c.want(200, "POST", "/b/o?uploads", nil, "X-Goog-Meta-Who", "me")
	id := between(text, "<UploadId>", "</UploadId>")
	c.want(400, "POST", "/b/o?uploads", nil, "X-Goog-If-Generation-Match", "0")
	h1, _ := c.want(200, "PUT", "/b/o?partNumber=1&uploadId="+id, big, "X-Goog-Hash", "crc32c="+crcOf(big))
	h2, _ := c.want(200, "PUT", "/b/o?partNumber=2&uploadId="+id, []byte("end"))
	c.want(400, "PUT", "/b/o?partNumber=3&uploadId="+id, []byte("end"), "X-Goog-Hash", "crc32c=AAAAAA==")
	c.want(400, "PUT", "/b/o?partNumber=0&uploadId="+id, []byte("end"))
	if _, text := c.want(200, "GET", "/b?uploads", nil); !strings.Contains(text, id) {
		t.Errorf("the upload is not listed: %s", text)
	}
	if _, text := c.want(200, "GET", "/b/o?uploadId="+id, nil); strings.Count(text, "<Part>") != 2 {
		t.Errorf("parts: %s", text)
	}
	part := func(n int, h http.Header) string {
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, h.Get("ETag"))
	}
	list := func(parts ...string) []byte {
		return []byte("<CompleteMultipartUpload>" + strings.Join(parts, "") + "</CompleteMultipartUpload>")
	}
	at := "/b/o?uploadId=" + id
	c.want(400, "POST", at, list(part(2, h2), part(1, h1)))
	c.want(400, "POST", at, list(part(1, h2)))
	c.want(400, "POST", at, list())
	c.hasNot("o")
	c.want(200, "POST", at, list(part(1, h1), part(2, h2)))
	c.has("o", string(big)+"end")
	c.want(200, "POST", at, list(part(1, h1), part(2, h2)))
	c.want(404, "PUT", "/b/o?partNumber=1&uploadId="+id, big)

	_, text = c.want(200, "POST", "/b/gone?uploads", nil)
	id = between(text, "<UploadId>", "</UploadId>")
	c.want(204, "DELETE", "/b/gone?uploadId="+id, nil)
	c.want(404, "DELETE", "/b/gone?uploadId="+id, nil)
	c.hasNot("gone")
}

// TestListsOfXML pages through uploads and parts.
func TestListsOfXML(t *testing.T) {
	c := newClient(t, Options{})
	between := func(text, from, to string) string {
		_, rest, _ := strings.Cut(text, from)
		value, _, _ := strings.Cut(rest, to)
		return value
	}
	var ids []string
	for _, name := range []string{"x/b", "x/a", "x0/c", "x/a"} {
		c.now = c.now.Add(time.Hour)
		_, text := c.want(200, "POST", "/b/"+name+"?uploads", nil)
		ids = append(ids, between(text, "<UploadId>", "</UploadId>"))
	}
	seen := map[string]bool{}
	var names []string
	for query := "/b?uploads&prefix=x/&max-uploads=1"; ; {
		_, text := c.want(200, "GET", query, nil)
		if n := strings.Count(text, "<Upload>"); n != 1 {
			t.Fatalf("a page of %d: %s", n, text)
		}
		seen[between(text, "<UploadId>", "</UploadId>")] = true
		names = append(names, between(text, "<Key>", "</Key>"))
		if between(text, "<Initiated>", "</Initiated>") < "2026-01-02T04" {
			t.Errorf("no time of the beginning: %s", text)
		}
		if between(text, "<IsTruncated>", "</IsTruncated>") == "false" {
			break
		}
		query = "/b?uploads&prefix=x/&max-uploads=1&key-marker=" + between(text, "<NextKeyMarker>", "</NextKeyMarker>") +
			"&upload-id-marker=" + between(text, "<NextUploadIdMarker>", "</NextUploadIdMarker>")
	}
	if fmt.Sprint(names) != "[x/a x/a x/b]" || len(seen) != 3 || seen[ids[2]] {
		t.Errorf("listed are %v, %v of %v", names, seen, ids)
	}
	// Without the id the marker is the whole name.
	if _, text := c.want(200, "GET", "/b?uploads&key-marker=x/a", nil); strings.Contains(text, "<Key>x/a<") || !strings.Contains(text, "<Key>x/b<") {
		t.Errorf("behind x/a: %s", text)
	}
	for _, n := range []string{"3", "1", "2"} {
		c.want(200, "PUT", "/b/x/b?partNumber="+n+"&uploadId="+ids[0], []byte(n))
	}
	_, text := c.want(200, "GET", "/b/x/b?max-parts=2&uploadId="+ids[0], nil)
	if between(text, "<NextPartNumberMarker>", "<") != "2" || strings.Count(text, "<Part>") != 2 {
		t.Errorf("the first page of parts: %s", text)
	}
	_, text = c.want(200, "GET", "/b/x/b?max-parts=2&part-number-marker=2&uploadId="+ids[0], nil)
	if between(text, "<PartNumber>", "<") != "3" || strings.Contains(text, "NextPart") {
		t.Errorf("the second page of parts: %s", text)
	}
	c.want(400, "GET", "/b?uploads&max-uploads=0", nil)
	c.want(400, "GET", "/b/x/b?max-parts=x&uploadId="+ids[0], nil)
	c.want(501, "GET", "/b?uploads&delimiter=/", nil)
	c.want(404, "GET", "/other?uploads", nil)
}

// TestRetention lets nothing be deleted, replaced or moved before its time.
// Metadata may change.
func TestRetention(t *testing.T) {
	c := newClient(t, Options{Retention: time.Hour})
	c.put("o", "content")
	upload := "/upload/storage/v1/b/b/o?name=o&uploadType="
	c.want(403, "DELETE", "/storage/v1/b/b/o/o", nil)
	c.want(403, "POST", upload+"media", []byte("other"))
	c.want(403, "POST", "/storage/v1/b/b/o/o/moveTo/o/p", nil)
	c.want(403, "POST", "/storage/v1/b/b/o/o/compose", []byte(`{"sourceObjects":[{"name":"o"}]}`))
	c.want(403, "POST", "/storage/v1/b/b/o/o/rewriteTo/b/b/o/o", nil)
	at := c.session("")
	c.want(403, "PUT", at, one, "Content-Range", fmt.Sprintf("bytes 0-%d/%d", quantum-1, quantum))
	_, text := c.want(200, "POST", "/b/o?uploads", nil)
	_, rest, _ := strings.Cut(text, "<UploadId>")
	id, _, _ := strings.Cut(rest, "<")
	h, _ := c.want(200, "PUT", "/b/o?partNumber=1&uploadId="+id, []byte("x"))
	complete := []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + h.Get("ETag") + "</ETag></Part></CompleteMultipartUpload>")
	c.want(403, "POST", "/b/o?uploadId="+id, complete)
	c.has("o", "content")
	_, text = c.want(200, "PATCH", "/storage/v1/b/b/o/o", []byte(`{"metadata":{"a":"b"}}`))
	if got := field(t, text, "retentionExpirationTime"); got != "2026-01-02T04:04:05Z" {
		t.Errorf("kept until %s", got)
	}
	c.now = c.now.Add(time.Hour)
	c.want(200, "POST", "/b/o?uploadId="+id, complete)
	c.has("o", "x")
	c.now = c.now.Add(time.Hour)
	c.want(204, "DELETE", "/storage/v1/b/b/o/o", nil)
}

// TestConditionsOfTwo has the preconditions of what touches two objects.
func TestConditionsOfTwo(t *testing.T) {
	for _, verb := range []struct{ name, path string }{
		{"move", "/storage/v1/b/b/o/from/moveTo/o/to?"},
		{"rewrite", "/storage/v1/b/b/o/from/rewriteTo/b/b/o/to?"},
	} {
		t.Run(verb.name, func(t *testing.T) {
			c := newClient(t, Options{})
			from, to := c.put("from", "new"), c.put("to", "old")
			for query, status := range map[string]int{
				"ifSourceGenerationMatch=1": 412, "ifSourceMetagenerationMatch=2": 412, "ifSourceGenerationNotMatch=" + from: 412,
				"ifGenerationMatch=0": 412, "ifGenerationMatch=" + from: 412, "ifMetagenerationMatch=9": 412, "ifGenerationNotMatch=" + to: 412,
				"ifGenerationMatch=x": 400,
			} {
				c.want(status, "POST", verb.path+query, nil)
				c.has("from", "new")
				c.has("to", "old")
			}
			_, text := c.want(200, "POST", verb.path+"ifSourceGenerationMatch="+from+"&ifGenerationMatch="+to, nil)
			c.has("to", "new")
			if out := text; verb.name == "move" && (field(t, out, "generation") <= to || field(t, out, "metageneration") != "1") {
				t.Errorf("moved is %s", out)
			}
		})
	}
	c := newClient(t, Options{})
	a := c.put("a", "x")
	c.want(400, "POST", "/storage/v1/b/b/o/a/moveTo/o/a", nil)
	c.want(404, "POST", "/storage/v1/b/b/o/none/moveTo/o/a", nil)
	c.want(200, "POST", "/storage/v1/b/b/o/b/compose?ifGenerationMatch=0", []byte(`{"deleteSourceObjects":true,"sourceObjects":[{"name":"a","generation":"`+a+`"}]}`))
	c.hasNot("a")
	_, text := c.want(200, "GET", "/storage/v1/b/b/o/b", nil)
	if field(t, text, "md5Hash") != "<nil>" || field(t, text, "componentCount") != "1" || field(t, text, "crc32c") != crcOf([]byte("x")) {
		t.Errorf("composed is %s", text)
	}
}

func TestToken(t *testing.T) {
	c := newClient(t, Options{Token: "secret"})
	c.want(401, "GET", "/storage/v1/b/b/o", nil)
	c.want(401, "GET", "/storage/v1/b/b/o", nil, "Authorization", "Bearer wrong")
	c.want(200, "GET", "/storage/v1/b/b/o", nil, "Authorization", "Bearer secret")
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-99/1000", "bytes 5-5/6", "bytes */10", "bytes */*", "", "bytes 9-1/10", "bytes -1-2/3", "bytes 0-9223372036854775807/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseContentRange(&http.Request{Header: http.Header{"Content-Range": {s}}, ContentLength: -1})
		if err != nil {
			return
		}
		if r.from < 0 || !r.question && !r.whole && r.to <= r.from || r.total >= 0 && r.to > r.total {
			t.Fatalf("%q gives %+v", s, r)
		}
	})
}

func FuzzRange(f *testing.F) {
	f.Add("bytes=0-9", int64(10))
	f.Add("bytes=-3", int64(2))
	f.Add("bytes=9223372036854775807-9223372036854775807", int64(1))
	f.Fuzz(func(t *testing.T, s string, size int64) {
		size = max(size, 0)
		from, n, _, ok := parseRange(s, size)
		if ok && (from < 0 || n < 0 || from+n > size) {
			t.Fatalf("%q of %d gives %d from %d", s, size, n, from)
		}
	})
}
