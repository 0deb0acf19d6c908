package servers

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// S3Request is one line of the gateway's access log.
type S3Request struct {
	Time        time.Time // whole seconds
	Operation   string    // PutObject, GetObject, HeadObject, ListObjectsV2, UploadPart …
	Bucket, Key string    // "" when the request has none
	Status      int       // HTTP
	Code        string    // S3's error code, or ""
	ObjectSize  int64     // bytes in the request's body
}

// Requests gives the gateway's requests since its first start, oldest first; it
// needs the option AccessLog. To count those of a step take the list before and after it.
func (s *S3) Requests() ([]S3Request, error) {
	f, err := os.Open(s.AccessLogFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []S3Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "log starts ") {
			continue
		}
		r, err := parseRequest(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.AccessLogFile(), err)
		}
		out = append(out, r)
	}
	return out, lines.Err()
}

// CountRequests counts requests by operation.
func CountRequests(requests []S3Request, want func(S3Request) bool) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if want == nil || want(r) {
			counts[r.Operation]++
		}
	}
	return counts
}

// parseRequest reads the fields that S3's server access logs begin with: owner,
// bucket, [time zone], address, requester, request id, operation, key, URI,
// status, error code, bytes sent, object size.
func parseRequest(line string) (S3Request, error) {
	const bucket, at, zone, operation, key, status, code, size, count = 1, 2, 3, 7, 8, 10, 11, 13, 14
	f := strings.Fields(line)
	if len(f) < count {
		return S3Request{}, fmt.Errorf("access log line with %d fields: %q", len(f), line)
	}
	none := func(s string) string {
		if s == "-" {
			return ""
		}
		return s
	}
	r := S3Request{
		Operation: strings.TrimPrefix(f[operation], "s3_"), Bucket: none(f[bucket]), Key: none(f[key]), Code: none(f[code]),
	}
	var err error
	if r.Time, err = time.Parse("[02/January/2006:15:04:05 -0700]", f[at]+" "+f[zone]); err != nil {
		return r, err
	}
	r.Time = r.Time.UTC()
	if r.Status, err = strconv.Atoi(f[status]); err != nil {
		return r, err
	}
	if f[size] != "-" {
		r.ObjectSize, err = strconv.ParseInt(f[size], 10, 64)
	}
	return r, err
}
