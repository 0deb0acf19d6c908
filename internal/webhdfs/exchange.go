package webhdfs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"hbackup"
	"hbackup/internal/hadoop"
)

// exchangeError is a failure on the way to a server or back. It says which one, and
// never the query, which may hold a token.
type exchangeError struct {
	host string
	err  error
	sent bool // the request may have reached the server
}

func (e *exchangeError) Error() string { return e.host + ": " + e.err.Error() }
func (e *exchangeError) Unwrap() error { return e.err }

// send makes one request and follows no redirect.
func (h *FS) send(req *http.Request) (*http.Response, error) {
	var written atomic.Bool // called before the first byte goes out
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }}
	resp, err := h.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, &exchangeError{req.URL.Host, withoutURL(err), written.Load()}
	}
	return resp, nil
}

// withoutURL takes the whole URL out of an error.
func withoutURL(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}

// drain reads the rest of a short answer, so that its connection can be used again.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
}

// redirect gives where an answer leads, for data. It must be WebHDFS again, and no
// less guarded than the way so far: the URL carries what a data node takes for
// proof of the user.
func redirect(from *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := resp.Location()
	switch {
	case err != nil:
		return nil, errors.New("a redirect leads nowhere")
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil:
		return nil, fmt.Errorf("a redirect leads to %q", to.Scheme+"://"+to.Hostname())
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, hbackup.Errorf("follow", "", hbackup.KindRefused, "%s is reached over https and redirects to http://%s", from.Host, to.Host).
			WithHint("serve the data nodes over https, too (dfs.http.policy=HTTPS_ONLY)")
	case !strings.HasPrefix(to.EscapedPath(), prefix+"/"):
		return nil, hbackup.Errorf("follow", "", hbackup.KindUnsupported, "%s redirects to %s, and not to WebHDFS", from.Host, to.Host).
			WithHint("give the address under which WebHDFS itself is served, as http://nn1:9870")
	}
	return to, nil
}

// isRedirect reports the statuses that WebHDFS redirects with, and their like.
func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusFound, http.StatusMovedPermanently, http.StatusSeeOther:
		return true
	}
	return false
}

var (
	errSilent  = errors.New("no answer in time")
	errStalled = errors.New("no bytes pass any more")
)

// failure gives a failed exchange its kind. Whose answer was lost is marked.
func (h *FS) failure(ctx context.Context, op, path string, err error) error {
	e := h.explain(ctx, op, path, err)
	var exchange *exchangeError
	if errors.As(err, &exchange) && exchange.sent {
		return lost{e}
	}
	return e
}

// explain makes the project's error of a failure.
func (h *FS) explain(ctx context.Context, op, path string, err error) *hbackup.Error {
	uri := h.uri(path)
	cause := context.Cause(ctx)
	if ctx.Err() != nil && cause != errSilent && cause != errStalled && cause != errDiscarded {
		kind := hbackup.KindOf(cause)
		if kind == hbackup.KindOther {
			kind = hbackup.KindOf(ctx.Err())
		}
		return hbackup.E(op, uri, kind, cause)
	}
	var typed *hbackup.Error
	if errors.As(err, &typed) {
		if typed.Path != "" {
			return typed
		}
		return hbackup.E(op, uri, typed.Kind, err).WithHint("%s", hbackup.HintOf(typed))
	}
	var netErr net.Error
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var noTLS tls.RecordHeaderError
	switch {
	case cause == errSilent || cause == errStalled || errors.Is(err, errSilent) || errors.Is(err, errStalled):
		if cause == nil {
			cause = err
		}
		return hbackup.E(op, uri, hbackup.KindTimeout, hostOf(err, cause)).WithHint("HDFS does not answer in time: see the load of the name node and the data nodes")
	case errors.As(err, &certificate), errors.As(err, &authority):
		return hbackup.E(op, uri, hbackup.KindDenied, err).WithHint("name the authority of the certificate with ca_file, and the server as in its certificate")
	case errors.As(err, &noTLS):
		return hbackup.E(op, uri, hbackup.KindUnsupported, err).WithHint("the server speaks no TLS on this port: https belongs to dfs.namenode.https-address, http to dfs.namenode.http-address")
	case errors.As(err, &netErr) && netErr.Timeout():
		return hbackup.E(op, uri, hbackup.KindTimeout, err).WithHint("HDFS does not answer in time: see the load of the name node and the data nodes")
	case isConnectionFailure(err):
		return hbackup.E(op, uri, hbackup.KindUnavailable, err).
			WithHint("check that the servers are up and that the addresses are those of their web service (dfs.namenode.http-address, dfs.datanode.http.address): every data node must be reached, too")
	}
	return hbackup.E(op, uri, hbackup.KindOther, err)
}

// hostOf puts the host that an exchange failed with before another cause.
func hostOf(err, cause error) error {
	var exchange *exchangeError
	if errors.As(err, &exchange) && !errors.As(cause, &exchange) {
		return &exchangeError{exchange.host, cause, exchange.sent}
	}
	return cause
}

func isConnectionFailure(err error) bool {
	var exchange *exchangeError
	return errors.As(err, &exchange) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// refusal makes an error of an answer that is none of success: the exception that
// it tells, or else its status.
func (h *FS) refusal(op, path string, resp *http.Response) error {
	uri, host := h.uri(path), resp.Request.URL.Host
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxException))
	if err != nil { // what it says of a file is not to be taken from the status alone
		return h.failure(resp.Request.Context(), op, path, &exchangeError{host, withoutURL(err), true})
	}
	if x, ok := readException(body); ok {
		e := hadoop.Explain(op, uri, x.class(), x.Message)
		if resp.StatusCode == http.StatusUnauthorized {
			e.Kind = hbackup.KindDenied
		}
		return e
	}
	fail := func(kind hbackup.Kind) *hbackup.Error {
		return hbackup.Errorf(op, uri, kind, "%s answers %s", host, resp.Status)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return fail(hbackup.KindDenied).WithHint("the cluster wants Kerberos: give a delegation token of a user who has one (delegation_token)")
	case http.StatusForbidden, http.StatusProxyAuthRequired:
		return fail(hbackup.KindDenied)
	case http.StatusTooManyRequests:
		return fail(hbackup.KindThrottled)
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return lost{fail(hbackup.KindUnavailable)}
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return lost{fail(hbackup.KindTimeout)}
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return noWebHDFS(fail(hbackup.KindUnsupported))
	}
	return fail(hbackup.KindOther)
}

func noWebHDFS(e *hbackup.Error) *hbackup.Error {
	return e.WithHint("WebHDFS is not served there: the address is that of the name node's web pages (dfs.namenode.http-address) or of HttpFS, and dfs.webhdfs.enabled must be true")
}
