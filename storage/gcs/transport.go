package gcs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hbackup"
	"hbackup/internal/lending"
)

// newTransport gives the HTTP transport of one store. Connections are HTTP/1:
// uploads go out side by side, and one connection each is faster than streams
// that share one. A peer that vanished without a word is found by keep-alives.
func newTransport(c Config) (*http.Transport, error) {
	dialer := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4},
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         lending.Wrap(dialer.DialContext),
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     60 * time.Second,
		MaxIdleConnsPerHost: 256,
		MaxIdleConns:        256,
		ReadBufferSize:      64 << 10,
		WriteBufferSize:     64 << 10,
		DisableCompression:  true, // an object is the bytes that were put
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		Protocols:           new(http.Protocols),
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
	t.Protocols.SetHTTP1(true)
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, hbackup.E("read certificates", c.CAFile, hbackup.KindUsage, err)
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, hbackup.Errorf("read certificates", c.CAFile, hbackup.KindUsage, "there is no certificate in PEM form in it")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	return t, nil
}

var (
	errReleased = errors.New("the request is over")
	errStalled  = &stalledError{}
	errBroken   = errors.New("the connection broke again and again")
)

// stalledError says that an attempt was given up because nothing moved.
type stalledError struct{}

func (*stalledError) Error() string   { return "no answer in time" }
func (*stalledError) Timeout() bool   { return true }
func (*stalledError) Temporary() bool { return true }

// slowest is the rate in bytes per second below which an upload counts as stalled.
const slowest = 64 << 10

// watcher carries out single attempts. It gives up those that stall, notes the
// date of answers for who asks, and keeps the library's reader from opening a
// broken download again and again without a pause and without an end.
type watcher struct {
	rt       http.RoundTripper
	stall    time.Duration
	retryFor time.Duration
	backoff  time.Duration
	login    *login // nil without credentials
}

// RoundTrip sends one attempt.
func (w *watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	down, _ := req.Context().Value(downloadKey{}).(*download)
	if err := down.before(req.Context(), w); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.patience(req), func() { cancel(errStalled) })
	resp, err := w.rt.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if context.Cause(ctx) == errStalled {
			err = errStalled
		}
		cancel(errReleased)
		return nil, err
	}
	if w.login.renews(req, resp.StatusCode) {
		// The library repeats a request after this answer, and not after a 401.
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // which names the status as well
		resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
		resp.StatusCode, resp.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	}
	if a, ok := req.Context().Value(answerKey{}).(*answer); ok {
		a.set(resp.Header.Get("Date"))
	}
	if down.answered(resp.StatusCode); resp.StatusCode >= 300 {
		down = nil // no bytes of an object
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, stall: w.stall, down: down}
	return resp, nil
}

// patience gives how long an attempt may take up to the header of its answer. A
// body of unknown length is one chunk at most, and its sender is in this process.
func (w *watcher) patience(req *http.Request) time.Duration {
	if d, ok := req.Context().Value(patienceKey{}).(time.Duration); ok {
		return d
	}
	n := req.ContentLength
	if n < 0 {
		n = DefaultChunkSize
	}
	return w.stall + time.Duration(n/slowest)*time.Second
}

type patienceKey struct{}

// withPatience has the answer to a request waited for as long as given.
func withPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}

// watchedBody gives up when the next bytes of an answer do not come.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
	down   *download
	closed atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if n > 0 {
		b.down.moved()
	}
	if err != nil && err != io.EOF && context.Cause(b.ctx) == errStalled {
		err = errStalled
	}
	return n, err
}

func (b *watchedBody) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(errReleased)
	return err
}

// download counts the attempts at one reading since the last byte came. A nil
// one is no download.
type download struct {
	tries   int
	since   time.Time
	refused bool // the last attempt had an answer and no bytes: the library counts those
}

type downloadKey struct{}

func withDownload(ctx context.Context) context.Context {
	return context.WithValue(ctx, downloadKey{}, &download{})
}

func (d *download) before(ctx context.Context, w *watcher) error {
	if d == nil {
		return nil
	}
	if d.tries++; d.tries == 1 {
		d.since = time.Now()
		return nil
	}
	if time.Since(d.since) > w.retryFor && !d.refused {
		return errBroken
	}
	return sleep(ctx, pause(w.backoff, d.tries-1))
}

func (d *download) answered(status int) {
	if d != nil {
		d.refused = status >= 300
	}
}

func (d *download) moved() {
	if d != nil {
		d.tries = 0
	}
}

// answer takes the Date header of the last answer.
type answer struct {
	mu   sync.Mutex
	text string
}

type answerKey struct{}

func withAnswer(ctx context.Context) (context.Context, *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), a
}

func (a *answer) set(date string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = date
}

func (a *answer) date() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text
}

// pause gives how long to wait after the given attempt: twice as long each time,
// and spread so that requests which failed together do not come back together.
func pause(unit time.Duration, attempt int) time.Duration {
	d := min(unit<<min(attempt-1, 10), 100*unit)
	return d/2 + rand.N(d/2+1)
}

// sleep waits, or gives the error of a context that ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
