package gcs

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
	p := proxy.New(t, server.Endpoint(), operation)
	direct := configFor(t)
	c := direct
	c.Endpoint = p.URL
	if change != nil {
		change(&c)
	}
	return open(t, c), open(t, direct), p
}

// Operations, as the proxy names them.
const (
	opInsert = "insert" // an upload in one request
	opBegin  = "begin"  // of a resumable upload
	opChunk  = "chunk"  // any but the last one
	opLast   = "last"   // the chunk that finalises, and questions of a known total
	opGet    = "get"
	opStat   = "stat"
	opList   = "list"
	opDelete = "delete"
	opPatch  = "patch"
	opMove   = "move"

	// Of multipart uploads.
	opInitiate = "initiate"
	opPart     = "part"
	opComplete = "complete"
	opAbort    = "abort"
	opUploads  = "uploads"
	opParts    = "parts"
)

// operation names what a request asks for.
func operation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Get("upload_id") != "" && strings.HasSuffix(r.Header.Get("Content-Range"), "/*"):
		return opChunk
	case q.Get("upload_id") != "":
		return opLast
	case q.Get("uploadType") == "multipart":
		return opInsert
	case q.Get("uploadType") == "resumable":
		return opBegin
	case q.Has("partNumber"):
		return opPart
	case q.Has("uploadId"):
		return map[string]string{http.MethodPost: opComplete, http.MethodDelete: opAbort, http.MethodGet: opParts}[r.Method]
	case q.Has("uploads") && r.Method == http.MethodPost:
		return opInitiate
	case q.Has("uploads"):
		return opUploads
	case r.Method == http.MethodDelete:
		return opDelete
	case r.Method == http.MethodPatch:
		return opPatch
	case strings.Contains(r.URL.Path, "/moveTo/"):
		return opMove
	case strings.HasSuffix(r.URL.Path, "/o"):
		return opList
	case q.Get("alt") == "media":
		return opGet
	}
	return opStat
}

// refuse answers with one of the service's errors.
func refuse(w http.ResponseWriter, r *http.Request, status int, reason string) bool {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	io.WriteString(w, errorBody(status, reason))
	return true
}

func errorBody(status int, reason string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":"says the proxy","errors":[{"message":"says the proxy","domain":"global","reason":%q}]}}`, status, reason)
}
