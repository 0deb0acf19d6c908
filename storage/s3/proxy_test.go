package s3

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hbackup/storage/storetest/proxy"
)

// behind gives a store whose requests pass the proxy, and one beside it that
// looks at the same place without faults.
func behind(t testing.TB, change func(*Config)) (*Store, *Store, *proxy.Proxy) {
	p := proxy.New(t, gateway.Endpoint(), operation)
	direct := configFor(t, gateway)
	c := direct
	c.Endpoint = p.URL
	if change != nil {
		change(&c)
	}
	s := open(t, c)
	s.gate.most = 4 * s.gate.least
	return s, open(t, direct), p
}

// operation names what a request asks for, in S3's words.
func operation(r *http.Request) string {
	q := r.URL.Query()
	inBucket := strings.Contains(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case q.Has("partNumber"):
		return "UploadPart"
	case r.Method == "POST" && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == "POST" && q.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == "POST" && q.Has("delete"):
		return "DeleteObjects"
	case r.Method == "DELETE" && q.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == "GET" && q.Has("uploadId"):
		return "ListParts"
	case r.Method == "GET" && q.Has("list-type"):
		return "ListObjectsV2"
	case r.Method == "HEAD" && !inBucket:
		return "HeadBucket"
	}
	return map[string]string{"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}[r.Method]
}

// refuse answers with one of S3's errors.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) bool {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "REQ1")
	w.WriteHeader(status)
	if r.Method != "HEAD" {
		io.WriteString(w, errorBody(code))
	}
	return true
}

func errorBody(code string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>`+"\n<Error><Code>%s</Code><Message>says the proxy</Message></Error>", code)
}
