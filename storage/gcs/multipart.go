package gcs

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"

	"hbackup"
	"hbackup/internal/lending"
)

// Limits of multipart uploads.
const (
	minPart  = 5 << 20 // bytes of every part but the last
	maxParts = 10_000
)

// upload is a multipart upload of the XML API, which Google's library does not
// offer: parts may be sent side by side and by many processes, nothing is visible
// before the completion, and an upload that is left open stays, and its parts are
// billed, until it is aborted. None of its requests takes a precondition: the
// completion replaces what has the name.
type upload struct {
	s    *Store
	name string // of the object in the bucket
	id   string
}

// part is one part as the store has it.
type part struct {
	Number int    `xml:"PartNumber"`
	Tag    string `xml:"ETag"`
	Size   int64  `xml:"Size,omitempty"` // only in listings
}

// openUpload is an upload as a listing shows it.
type openUpload struct {
	Name  string    `xml:"Key"`
	ID    string    `xml:"UploadId"`
	Began time.Time `xml:"Initiated"`
}

// beginUpload opens an upload of an object with that user metadata.
func (s *Store) beginUpload(ctx context.Context, name string, metadata map[string]string) (upload, error) {
	u, _, err := s.beginUploadOrTwo(ctx, name, metadata)
	return u, err
}

// beginUploadOrTwo also says whether it was asked for more than once: an answer was
// lost, and with it perhaps an upload.
func (s *Store) beginUploadOrTwo(ctx context.Context, name string, metadata map[string]string) (_ upload, again bool, _ error) {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	if s.c.StorageClass != "" {
		h.Set("X-Goog-Storage-Class", s.c.StorageClass)
	}
	for k, v := range metadata {
		h.Set("X-Goog-Meta-"+k, v)
	}
	var out struct {
		XMLName struct{} `xml:"InitiateMultipartUploadResult"`
		ID      string   `xml:"UploadId"`
	}
	tries := 0
	_, err := s.callXML(ctx, xmlRequest{method: http.MethodPost, name: name, query: url.Values{"uploads": {""}}, header: h, into: &out, tries: &tries})
	if err == nil && out.ID == "" {
		err = errNotXML
	}
	return upload{s: s, name: name, id: out.ID}, tries > 1, err
}

// put sends a part, which replaces an earlier one of the same number. The store
// refuses other bytes than those of the CRC32C.
func (u upload) put(ctx context.Context, number int, data []byte, crc uint32) (part, error) {
	sum := encodeCRC(crc)
	h, err := u.s.callXML(ctx, xmlRequest{
		method: http.MethodPut, name: u.name, query: url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {u.id}},
		header: http.Header{"X-Goog-Hash": {"crc32c=" + sum}}, body: data,
	})
	if err != nil {
		return part{}, err
	}
	p := part{Number: number, Tag: h.Get("ETag")}
	if p.Tag == "" {
		return part{}, errNotXML
	}
	if got, ok := crcIn(h); ok && got != sum {
		return part{}, hbackup.Errorf("put part", "", hbackup.KindCorrupt, "the store has stored CRC32C %s as part %d; %s was sent", got, number, sum)
	}
	return p, nil
}

// complete makes an object of the parts, which are given in order. A completion
// whose answer was lost may be repeated; in the end only the object can tell.
func (u upload) complete(ctx context.Context, parts []part) error {
	list, err := xml.Marshal(struct {
		XMLName struct{} `xml:"CompleteMultipartUpload"`
		Part    []part
	}{Part: parts})
	if err != nil {
		return err
	}
	var out struct {
		XMLName struct{} `xml:"CompleteMultipartUploadResult"`
	}
	_, err = u.s.callXML(withPatience(ctx, completionTakes), xmlRequest{
		method: http.MethodPost, name: u.name, query: url.Values{"uploadId": {u.id}},
		header: http.Header{"Content-Type": {"application/xml"}}, body: list, into: &out,
	})
	return err
}

// completionTakes is how long the answer to a completion is waited for: the
// service says that it can take minutes.
const completionTakes = 10 * time.Minute

// abort gives the upload up and frees its parts. One that is not there (any more)
// is no error. A part that is still on its way may land behind it.
func (u upload) abort(ctx context.Context) error {
	_, err := u.s.callXML(ctx, xmlRequest{method: http.MethodDelete, name: u.name, query: url.Values{"uploadId": {u.id}}})
	if isMissing(err) {
		return nil
	}
	return err
}

// parts lists what the store has of the upload, by number.
func (u upload) parts(ctx context.Context) ([]part, error) {
	var all []part
	for marker := ""; ; {
		q := url.Values{"uploadId": {u.id}}
		if marker != "" {
			q.Set("part-number-marker", marker)
		}
		var out struct {
			XMLName   struct{} `xml:"ListPartsResult"`
			Part      []part
			Truncated bool   `xml:"IsTruncated"`
			Next      string `xml:"NextPartNumberMarker"`
		}
		if _, err := u.s.callXML(ctx, xmlRequest{method: http.MethodGet, name: u.name, query: q, into: &out}); err != nil {
			return nil, err
		}
		all = append(all, out.Part...)
		switch {
		case !out.Truncated:
			return all, nil
		case out.Next == "" || out.Next == marker:
			return nil, corrupt("the store lists the parts of an upload without an end")
		}
		marker = out.Next
	}
}

// uploads lists the uploads that are open for names which begin with the prefix.
// The prefix is compared as a string: end it with '/' to spare neighbours.
func (s *Store) uploads(ctx context.Context, prefix string) ([]openUpload, error) {
	var all []openUpload
	for name, id := "", ""; ; {
		q := url.Values{"uploads": {""}, "prefix": {prefix}}
		if name != "" {
			q.Set("key-marker", name)
			q.Set("upload-id-marker", id)
		}
		var out struct {
			XMLName   struct{} `xml:"ListMultipartUploadsResult"`
			Upload    []openUpload
			Truncated bool   `xml:"IsTruncated"`
			NextName  string `xml:"NextKeyMarker"`
			NextID    string `xml:"NextUploadIdMarker"`
		}
		if _, err := s.callXML(ctx, xmlRequest{method: http.MethodGet, query: q, into: &out}); err != nil {
			return nil, err
		}
		for _, u := range out.Upload {
			if !strings.HasPrefix(u.Name, prefix) || u.ID == "" {
				return nil, corrupt("the store lists an upload of %q, which does not begin with %q", u.Name, prefix)
			}
		}
		all = append(all, out.Upload...)
		switch {
		case !out.Truncated:
			return all, nil
		case out.NextName < name || out.NextName == name && out.NextID == id:
			return nil, corrupt("the store lists uploads without an end")
		}
		name, id = out.NextName, out.NextID
	}
}

// xmlRequest is one request of the XML API.
type xmlRequest struct {
	method string
	name   string // of the object in the bucket; "" for the bucket itself
	query  url.Values
	header http.Header
	body   []byte
	into   any  // what the answer is decoded into; nil when its body does not matter
	tries  *int // how often it was sent; nil when nobody asks
}

var errNotXML = hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "it is none to a multipart upload; something that is not Google Cloud Storage has answered")

// callXML sends a request, and again after failures that may pass. Errors are the
// library's, as are those of its own requests.
func (s *Store) callXML(ctx context.Context, r xmlRequest) (http.Header, error) {
	began := time.Now()
	for try := 1; ; try++ {
		if r.tries != nil {
			*r.tries = try
		}
		h, err := s.callOnce(ctx, r)
		again := mayPass(err) || isDamage(err) && try < damageTries
		if err == nil || !again || ctx.Err() != nil || time.Since(began) >= s.c.RetryFor || sleep(ctx, pause(s.c.backoff, try)) != nil {
			return h, err
		}
	}
}

func (s *Store) callOnce(ctx context.Context, r xmlRequest) (http.Header, error) {
	at := s.c.xmlBase() + url.PathEscape(s.c.Bucket)
	if r.name != "" {
		at += "/" + escapeName(r.name)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at+"?"+r.query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if len(r.body) > 0 {
		body := lending.NewBody(r.body)
		defer body.Revoke()
		req.Body, req.ContentLength = body, int64(len(r.body))
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // which is before the body is revoked
	const longest = 8 << 20 // a full page of names of the longest kind
	text, err := io.ReadAll(io.LimitReader(resp.Body, longest))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, xmlError(resp, text)
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", noEOF(err))
	case r.into == nil:
		return resp.Header, nil
	}
	if err := xml.Unmarshal(text, r.into); err != nil {
		// A completion that takes long may begin with a good status and end with an error.
		if failed := xmlError(resp, text); len(failed.Errors) > 0 {
			return nil, failed
		}
		return nil, errNotXML
	}
	return resp.Header, nil
}

// xmlError makes the library's error of an answer of the XML API.
func xmlError(resp *http.Response, text []byte) *googleapi.Error {
	out := &googleapi.Error{Code: resp.StatusCode, Body: string(text), Header: resp.Header}
	var in struct {
		XMLName struct{} `xml:"Error"`
		Code    string
		Message string
	}
	if xml.Unmarshal(text, &in) != nil || in.Code == "" {
		return out
	}
	out.Message = in.Code + ": " + in.Message
	out.Errors = []googleapi.ErrorItem{{Reason: xmlReason(in.Code), Message: in.Message}}
	if out.Code < 400 {
		out.Code = http.StatusInternalServerError // it came behind a good status
	}
	return out
}

// xmlReason gives the JSON API's word for a code of the XML API, where the word
// counts.
func xmlReason(code string) string {
	switch code {
	case "SlowDown", "TooManyRequests", "RateLimitExceeded":
		return "rateLimitExceeded"
	case "QuotaExceeded":
		return "quotaExceeded"
	case "RetentionPolicyNotMet":
		return "retentionPolicyNotMet"
	}
	return code
}

// escapeName gives a name as it stands in a path. The plus sign is encoded as
// well, because there are servers that take it for a blank.
func escapeName(name string) string {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "+", "%2B")
	}
	return strings.Join(segments, "/")
}

func encodeCRC(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// crcIn gives the CRC32C that the store names in a header.
func crcIn(h http.Header) (string, bool) {
	for _, line := range h.Values("X-Goog-Hash") {
		for item := range strings.SplitSeq(line, ",") {
			if sum, ok := strings.CutPrefix(strings.TrimSpace(item), "crc32c="); ok {
				return sum, true
			}
		}
	}
	return "", false
}

// lacksUploads reports an answer that says that multipart uploads are not to be
// had here: the right is missing, or the service is an emulator that does not know
// them.
func lacksUploads(err error) bool {
	api := answerOf(err)
	switch {
	case errors.Is(err, errNotXML):
		return true
	case api == nil || bucketMissing(api):
		return false
	case api.Code == http.StatusForbidden:
		return !reasonOf(api, "userRateLimitExceeded", "rateLimitExceeded", "quotaExceeded")
	}
	return api.Code == 400 || api.Code == 404 || api.Code == 405 || api.Code == 501
}
