package gcs

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// faultyProxy stands between the store and the server and does to single
// requests what a fault says.
type faultyProxy struct {
	*httptest.Server
	target string
	client *http.Client

	mu    sync.Mutex
	fault fault
	count map[string]int // requests by operation
	conns map[net.Conn]bool
}

// fault handles one request, the nth of its operation, counted from 1. It
// reports false to let it pass unharmed.
type fault func(op string, nth int, w http.ResponseWriter, r *http.Request) bool

func newFaultyProxy(t testing.TB, target string) *faultyProxy {
	p := &faultyProxy{target: target, count: map[string]int{}, conns: map[net.Conn]bool{},
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}}}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ConnState = func(c net.Conn, state http.ConnState) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if state == http.StateClosed || state == http.StateHijacked {
			delete(p.conns, c)
		} else {
			p.conns[c] = true
		}
	}
	p.Start()
	t.Cleanup(func() {
		p.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

// behind gives a store whose requests pass the proxy, and one beside it that
// looks at the same place without faults.
func behind(t testing.TB, change func(*Config)) (*Store, *Store, *faultyProxy) {
	p := newFaultyProxy(t, server.Endpoint())
	direct := configFor(t)
	c := direct
	c.Endpoint = p.URL
	if change != nil {
		change(&c)
	}
	return open(t, c), open(t, direct), p
}

// set replaces the fault and starts counting anew.
func (p *faultyProxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.count = f, map[string]int{}
}

func (p *faultyProxy) requests(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[op]
}

func (p *faultyProxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := operation(r)
	p.mu.Lock()
	p.count[op]++
	nth, f := p.count[op], p.fault
	p.mu.Unlock()
	if f != nil && f(op, nth, w, r) {
		return
	}
	p.pass(w, r)
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

// forward sends the request to the server and gives its answer.
func (p *faultyProxy) forward(r *http.Request, body io.Reader) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, _ = strings.Cut(p.target, "://")
	out.Host = r.Host // the address of a session is made from it
	if out.Body = io.NopCloser(body); r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	return p.client.Transport.RoundTrip(out)
}

func (p *faultyProxy) pass(w http.ResponseWriter, r *http.Request) {
	resp, err := p.forward(r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answerWith(w, resp)
	io.Copy(w, resp.Body)
}

func answerWith(w http.ResponseWriter, resp *http.Response) {
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
}

// loseAnswer carries the request out and breaks the connection in place of an answer.
func (p *faultyProxy) loseAnswer(t testing.TB, w http.ResponseWriter, r *http.Request) bool {
	resp, err := p.forward(r, r.Body)
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	reset(t, w)
	return true
}

// cutRequest reads the first n bytes of the request, then resets the connection.
func cutRequest(t testing.TB, w http.ResponseWriter, r *http.Request, n int64) bool {
	io.CopyN(io.Discard, r.Body, n)
	reset(t, w)
	return true
}

// cutAnswer gives the first n bytes of the answer, then resets the connection.
func (p *faultyProxy) cutAnswer(w http.ResponseWriter, r *http.Request, n int64) bool {
	resp, err := p.forward(r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answerWith(w, resp)
	io.CopyN(w, resp.Body, n)
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func reset(t testing.TB, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("hijack: %v", err)
		return
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
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

// rewrite passes the request on and changes the body of its answer.
func (p *faultyProxy) rewrite(w http.ResponseWriter, r *http.Request, change func([]byte) []byte) bool {
	resp, err := p.forward(r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body = change(body)
	resp.Header.Set("Content-Length", fmt.Sprint(len(body)))
	answerWith(w, resp)
	w.Write(body)
	return true
}

// damage flips a bit of the content on its way to the server.
func (p *faultyProxy) damage(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body[len(body)/2] ^= 4
	resp, err := p.forward(r, bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answerWith(w, resp)
	io.Copy(w, resp.Body)
	return true
}
