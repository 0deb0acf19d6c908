// Package proxy stands between a store and its server in tests, and does to single
// Requests what a fault says: over real connections, so that the client's own code
// meets what networks and servers do.
package proxy

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

// Proxy passes requests on to a server, but for those that its fault takes.
type Proxy struct {
	*httptest.Server
	target    string
	operation func(*http.Request) string
	client    *http.Client

	mu    sync.Mutex
	fault Fault
	count map[string]int // Requests by operation
	conns map[net.Conn]bool
}

// Fault handles one request, the nth of its operation, counted from 1. It
// reports false to let it pass unharmed.
type Fault func(op string, nth int, w http.ResponseWriter, r *http.Request) bool

// New starts a proxy in front of the server with the URL target; operation names what
// a request asks for. It ends with the test.
func New(t testing.TB, target string, operation func(*http.Request) string) *Proxy {
	p := &Proxy{target: target, operation: operation, count: map[string]int{}, conns: map[net.Conn]bool{},
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

// Set replaces the fault and starts counting anew.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.count = f, map[string]int{}
}

// Requests counts those of an operation since the fault was set.
func (p *Proxy) Requests(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[op]
}

// Connections counts those that are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := p.operation(r)
	p.mu.Lock()
	p.count[op]++
	nth, f := p.count[op], p.fault
	p.mu.Unlock()
	if f != nil && f(op, nth, w, r) {
		return
	}
	p.Pass(w, r)
}

// Forward sends the request to the server and gives its answer.
func (p *Proxy) Forward(r *http.Request, body io.Reader) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, _ = strings.Cut(p.target, "://")
	out.Host = r.Host // it is signed
	if out.Body = io.NopCloser(body); r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	out.Header.Del("Expect")
	return p.client.Transport.RoundTrip(out)
}

// Pass lets a request through.
func (p *Proxy) Pass(w http.ResponseWriter, r *http.Request) {
	resp, err := p.Forward(r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	Answer(w, resp)
	io.Copy(w, resp.Body)
}

// Answer gives the status and the headers of an answer; its body is left to the caller.
func Answer(w http.ResponseWriter, resp *http.Response) {
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
}

// LoseAnswer carries the request out and breaks the connection in place of an answer.
func (p *Proxy) LoseAnswer(t testing.TB, w http.ResponseWriter, r *http.Request) bool {
	resp, err := p.Forward(r, r.Body)
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	Reset(t, w)
	return true
}

// CutRequest reads the first n bytes of the request, then resets the connection.
func CutRequest(t testing.TB, w http.ResponseWriter, r *http.Request, n int64) bool {
	io.CopyN(io.Discard, r.Body, n)
	Reset(t, w)
	return true
}

// CutAnswer gives the first n bytes of the answer, then resets the connection.
func (p *Proxy) CutAnswer(w http.ResponseWriter, r *http.Request, n int64) bool {
	resp, err := p.Forward(r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	Answer(w, resp)
	io.CopyN(w, resp.Body, n)
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Reset breaks the connection of a request so that the client sees a reset.
func Reset(t testing.TB, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("hijack: %v", err)
		return
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// Rewrite passes the request on and changes the body of its answer.
func (p *Proxy) Rewrite(w http.ResponseWriter, r *http.Request, change func([]byte) []byte) bool {
	resp, err := p.Forward(r, r.Body)
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
	Answer(w, resp)
	w.Write(body)
	return true
}

// Damage flips a bit of the request's body on its way to the server.
func (p *Proxy) Damage(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body[len(body)/2] ^= 4
	resp, err := p.Forward(r, bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	Answer(w, resp)
	io.Copy(w, resp.Body)
	return true
}
