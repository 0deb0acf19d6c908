package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"hbackup"
)

// newTransport gives the HTTP transport of one store. Connections are HTTP/1:
// parts go out side by side, and one connection each is faster than streams that
// share one. A peer that vanished without a word is found by keep-alives.
func newTransport(c Config) (*http.Transport, error) {
	dialer := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4},
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           lendingDial(dialer.DialContext),
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 2 * time.Second,
		IdleConnTimeout:       60 * time.Second,
		MaxIdleConnsPerHost:   256,
		MaxIdleConns:          256,
		ReadBufferSize:        64 << 10,
		DisableCompression:    true, // an object is the bytes that were put
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
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
			return nil, usage("read certificates", c.CAFile, "there is no certificate in PEM form in it")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	return t, nil
}

// doer carries out single attempts for the SDK.
type doer struct {
	rt    http.RoundTripper
	gate  *gate
	stall time.Duration
}

var (
	errReleased = errors.New("the request is over")
	errStalled  = &stalledError{}
)

// stalledError says that an attempt was given up because nothing moved.
type stalledError struct{}

func (*stalledError) Error() string   { return "no answer in time" }
func (*stalledError) Timeout() bool   { return true }
func (*stalledError) Temporary() bool { return true }

// slowest is the rate in bytes per second below which an upload counts as stalled.
const slowest = 64 << 10

// patience gives how long an attempt may take up to the header of its answer.
func (d *doer) patience(req *http.Request) time.Duration {
	if req.Method == http.MethodPost && req.URL.Query().Has("uploadId") {
		return 60 * d.stall // a completion may copy the whole object
	}
	return d.stall + time.Duration(max(req.ContentLength, 0)/slowest)*time.Second
}

// Do sends one attempt. It follows no redirection: the signature would be wrong.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && req.Header.Get(customerKeyHeader) != "" {
		return nil, errKeyInTheOpen // the endpoint came from the environment or a profile
	}
	pass, err := d.gate.enter(req.Context())
	if err != nil {
		return nil, err
	}
	load := payloadOf(req.Context())
	if load != nil {
		if err := load.begin(); err != nil {
			pass.over()
			return nil, err
		}
		if req.Body != nil && req.Body != http.NoBody {
			req.Body.Close()
			req.Body = load.open()
			req.GetBody = func() (io.ReadCloser, error) { return load.open(), nil }
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(d.patience(req), func() { cancel(errStalled) })
	resp, err := d.rt.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		pass.over()
		if context.Cause(ctx) == errStalled {
			err = errStalled
		}
		cancel(errReleased)
		return nil, err
	}
	if load != nil {
		load.answered(resp.StatusCode)
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		pass.refused()
	case resp.StatusCode < 500:
		pass.accepted()
	default:
		pass.over()
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, stall: d.stall}
	return resp, nil
}

// watchedBody gives up when the next bytes of an answer do not come.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
	closed atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
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
