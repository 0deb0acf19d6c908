package s3

import (
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup"
	"hbackup/storage"
)

// formatRange gives the value of an HTTP Range header. An end that is beyond
// what can be counted is left open.
func formatRange(r storage.Range) string {
	out := "bytes=" + strconv.FormatInt(r.Offset, 10) + "-"
	if r.Length > 0 && r.Length <= math.MaxInt64-r.Offset {
		out += strconv.FormatInt(r.Offset+r.Length-1, 10)
	}
	return out
}

// span is the part of an object that an answer brings: from up to to, of total bytes.
type span struct{ from, to, total int64 }

// spanOf reads it from the answer's headers. Without Content-Range it is the whole.
func spanOf(out *s3.GetObjectOutput) (span, error) {
	if out.ContentLength == nil || *out.ContentLength < 0 || out.ETag == nil && out.LastModified == nil {
		return span{}, hbackup.Errorf("get range", "", hbackup.KindUnsupported, "the answer does not describe an object; something that is not S3 has answered")
	}
	n := *out.ContentLength
	if out.ContentRange == nil {
		return span{0, n, n}, nil
	}
	s, ok := parseContentRange(*out.ContentRange)
	if !ok || s.to-s.from != n {
		return span{}, hbackup.Errorf("get range", "", hbackup.KindUnsupported,
			"the store answered with the range %.60q and %d bytes", *out.ContentRange, n)
	}
	return s, nil
}

// parseContentRange reads "bytes 0-99/1000".
func parseContentRange(s string) (span, bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return span{}, false
	}
	both, total, ok1 := strings.Cut(rest, "/")
	first, last, ok2 := strings.Cut(both, "-")
	from, err1 := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	all, err3 := strconv.ParseInt(total, 10, 64)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil || from < 0 || to < from || to >= all {
		return span{}, false
	}
	return span{from, to + 1, all}, true
}
