package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// page is one answer to ListObjectsV2. Its memory is used for the next one again.
type page struct {
	entries   []entry
	count     int64 // KeyCount, -1 when the store does not say
	truncated bool
	token     string // where the next page begins
	encoding  string

	body []byte
	xml  xmlScanner
}

// entry is one object of it.
type entry struct {
	name     string // in the bucket
	size     int64
	modified time.Time
}

// largestPage bounds an answer in bytes: a thousand of the longest names, each
// byte of them written as three, are a quarter.
const largestPage = 16 << 20

// read fills the page from an answer's body.
func (p *page) read(body io.Reader, announced int64) error {
	buf := bytes.NewBuffer(p.body[:0])
	if announced > 0 && announced <= largestPage {
		buf.Grow(int(announced) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(body, largestPage+1))
	p.body = buf.Bytes()
	switch {
	case err != nil:
		return fmt.Errorf("read listing: %w", err)
	case n > largestPage:
		return corrupt("a page is longer than %d bytes", largestPage)
	}
	if err := p.parse(p.body); err != nil {
		return corrupt("%w", err)
	}
	return nil
}

// parse takes the page out of the document.
func (p *page) parse(doc []byte) error {
	*p = page{entries: p.entries[:0], count: -1, body: p.body, xml: p.xml}
	root, err := p.xml.reset(doc)
	if err != nil {
		return err
	}
	if string(root) != "ListBucketResult" {
		return fmt.Errorf("the answer is no listing, but <%s>", root)
	}
	var seen once
	for {
		name, err := p.xml.child()
		if err != nil {
			return err
		}
		if name == nil {
			break
		}
		if err := p.take(name, &seen); err != nil {
			return err
		}
	}
	if err := p.xml.finish(); err != nil {
		return err
	}
	if !seen.has("IsTruncated") {
		return errors.New("it does not say whether there is more")
	}
	return p.unescape()
}

// once remembers the elements that must not come twice.
type once struct{ names [8]string }

func (o *once) has(name string) bool {
	for _, n := range o.names {
		if n == name {
			return true
		}
	}
	return false
}

func (o *once) add(name string) error {
	if o.has(name) {
		return fmt.Errorf("there are two <%s>", name)
	}
	for i, n := range o.names {
		if n == "" {
			o.names[i] = name
			return nil
		}
	}
	return nil
}

// take reads one element of the root.
func (p *page) take(name []byte, seen *once) (err error) {
	switch string(name) {
	case "Contents":
		var e entry
		if err = p.entry(&e); err == nil {
			p.entries = append(p.entries, e)
		}
		return err
	case "IsTruncated":
		if err = seen.add("IsTruncated"); err == nil {
			p.truncated, err = p.boolean()
		}
	case "KeyCount":
		if err = seen.add("KeyCount"); err == nil {
			p.count, err = p.number()
		}
	case "NextContinuationToken":
		if err = seen.add("NextContinuationToken"); err == nil {
			p.token, err = p.str()
		}
	case "EncodingType":
		if err = seen.add("EncodingType"); err == nil {
			p.encoding, err = p.str()
		}
	default:
		return p.xml.skip()
	}
	return err
}

// entry reads the inside of <Contents>.
func (p *page) entry(e *entry) error {
	var seen once
	for {
		name, err := p.xml.child()
		switch {
		case err != nil:
			return err
		case name == nil:
			if !seen.has("Key") {
				return errors.New("an object has no name")
			}
			if !seen.has("Size") {
				return fmt.Errorf("there is no size of %q", e.name)
			}
			return nil
		}
		switch string(name) {
		case "Key":
			if err = seen.add("Key"); err == nil {
				e.name, err = p.str()
			}
		case "Size":
			if err = seen.add("Size"); err == nil {
				e.size, err = p.number()
			}
		case "LastModified":
			if err = seen.add("LastModified"); err == nil {
				e.modified, err = p.time()
			}
		default:
			err = p.xml.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (p *page) str() (string, error) {
	b, err := p.xml.chars()
	return string(b), err
}

func (p *page) number() (int64, error) {
	b, err := p.xml.chars()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is no number of bytes or objects", b)
	}
	return n, nil
}

func (p *page) boolean() (bool, error) {
	b, err := p.xml.chars()
	switch s := string(bytes.TrimSpace(b)); {
	case err != nil:
		return false, err
	case s == "true" || s == "false":
		return s == "true", nil
	}
	return false, fmt.Errorf("%.40q is neither true nor false", b)
}

func (p *page) time() (time.Time, error) {
	b, err := p.xml.chars()
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, string(bytes.TrimSpace(b)))
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is no time", b)
	}
	return t, nil
}

// unescape turns the names into what they are. Whether they are encoded is known
// only at the end, because the element that says so may follow them.
func (p *page) unescape() error {
	if p.encoding == "" {
		return nil
	}
	if p.encoding != "url" {
		return fmt.Errorf("the names have the unknown encoding %.40q", p.encoding)
	}
	for i := range p.entries {
		e := &p.entries[i]
		if strings.IndexByte(e.name, '%') < 0 && strings.IndexByte(e.name, '+') < 0 {
			continue
		}
		name, err := url.QueryUnescape(e.name)
		if err != nil {
			return fmt.Errorf("the name %q is not encoded as announced", e.name)
		}
		e.name = name
	}
	return nil
}

// into has the answer to ListObjectsV2 read into the page. The SDK's own decoder
// takes ten times as long. Answers that are errors are left to it.
func (p *page) into(stack *middleware.Stack) error {
	scan := &scanPage{p: p}
	theirs, err := stack.Deserialize.Swap("OperationDeserializer", scan)
	scan.theirs = theirs
	return err
}

type scanPage struct {
	p      *page
	theirs middleware.DeserializeMiddleware
}

func (*scanPage) ID() string { return "OperationDeserializer" }

func (s *scanPage) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || resp.StatusCode < 200 || resp.StatusCode >= 300 {
		return s.theirs.HandleDeserialize(ctx, in, middleware.DeserializeHandlerFunc(
			func(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
				return out, metadata, err
			}))
	}
	out.Result = &s3.ListObjectsV2Output{}
	err = s.p.read(resp.Body, resp.ContentLength)
	smithyhttp.CloseResponseBody(ctx, resp, false, err)
	return out, metadata, err
}
