package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// sink is an S3 that forgets what it is sent, lists keys that it does not have and
// gives zeros for an object.
type sink struct {
	keys int64
	size int64 // of the object, in bytes
}

const xmlns = `xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`

func (s sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("ETag", `"tag"`)
	switch {
	case r.Method == http.MethodPut:
		io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 1<<20))
	case r.Method == http.MethodPost && q.Has("uploads"):
		fmt.Fprintf(w, `<InitiateMultipartUploadResult %s><UploadId>id</UploadId></InitiateMultipartUploadResult>`, xmlns)
	case r.Method == http.MethodPost:
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `<CompleteMultipartUploadResult %s><ETag>tag</ETag></CompleteMultipartUploadResult>`, xmlns)
	case q.Has("list-type"):
		from, _ := strconv.ParseInt(q.Get("continuation-token"), 10, 64)
		w.Write(s.page(from))
	default:
		w.Header().Set("Content-Length", strconv.FormatInt(s.size, 10))
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 22:01:02 GMT")
		io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(zeros{}, s.size), make([]byte, 1<<20))
	}
}

func (s sink) page(from int64) []byte {
	to := min(from+1000, s.keys)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<ListBucketResult %s><Name>bench</Name><KeyCount>%d</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>`, xmlns, to-from)
	if to < s.keys {
		fmt.Fprintf(&b, "<IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", to)
	} else {
		b.WriteString("<IsTruncated>false</IsTruncated>")
	}
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `<Contents><Key>prod/archive/data/default/orders/d41d8cd98f00b204e9800998ecf8427e/cf/%032x</Key><LastModified>2026-11-30T22:01:02.000Z</LastModified>`+
			`<ETag>&quot;tag&quot;</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>`, i, i)
	}
	b.WriteString("</ListBucketResult>")
	return b.Bytes()
}
