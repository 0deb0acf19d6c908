package gcs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"hbackup"
	"hbackup/storage"
)

// fail turns what a request ended with into an error of ours for the key, or for
// the location when the key is empty.
func (s *Store) fail(ctx context.Context, op string, key storage.Key, err error) error {
	if err == nil {
		return nil
	}
	path := string(s.loc)
	if key != "" {
		path = s.loc.At(key)
	}
	if ctx.Err() != nil {
		return hbackup.E(op, path, hbackup.KindOther, ctx.Err())
	}
	if hbackup.KindOf(err) != hbackup.KindOther && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return hbackup.E(op, path, hbackup.KindOther, err)
	}
	v := s.judge(err)
	out := hbackup.E(op, path, v.kind, &cause{text: v.text, err: err})
	if v.hint != "" {
		out.Hint = v.hint
	}
	return out
}

// cause is an error of the library with a text that fits on a line.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// verdict is what is said of a failed request.
type verdict struct {
	kind       hbackup.Kind
	text, hint string
}

// judge classes an error of the library.
func (s *Store) judge(err error) verdict {
	var token *tokenError
	api := answerOf(err)
	switch {
	case errors.As(err, &token):
		return judgeToken(token)
	case api != nil:
		return s.judgeAnswer(api)
	}
	return s.judgeConnection(err)
}

// judgeAnswer classes an answer by its status; the service's own words go along.
func (s *Store) judgeAnswer(api *googleapi.Error) verdict {
	v := verdict{text: fmt.Sprintf("status %d", api.Code)}
	if m := wordsOf(api); m != "" {
		v.text += ": " + m
	}
	switch code := api.Code; {
	case code == http.StatusNotFound && bucketMissing(api):
		// The bucket is part of the configuration. It must never look like an
		// object that is merely not there.
		v.kind, v.text = hbackup.KindUsage, "there is no bucket "+s.c.Bucket
		v.hint = "create the bucket, or check its name and the endpoint"
	case code == http.StatusNotFound:
		v.kind = hbackup.KindNotFound
	case code == http.StatusUnauthorized:
		v.kind, v.hint = hbackup.KindDenied, "check the credentials and this machine's clock"
	case code == http.StatusForbidden && reasonOf(api, "userRateLimitExceeded", "rateLimitExceeded"):
		v.kind = hbackup.KindThrottled
	case code == http.StatusForbidden && reasonOf(api, "quotaExceeded"):
		v.kind, v.hint = hbackup.KindNoSpace, "raise the quota of the project"
	case code == http.StatusForbidden && reasonOf(api, "retentionPolicyNotMet", "objectUnderActiveHold"):
		v.kind, v.hint = hbackup.KindDenied, "a retention policy or a hold keeps the object"
	case code == http.StatusForbidden:
		v.kind, v.hint = hbackup.KindDenied, "the account is known, but may not do this; the rights that are needed are listed in the documentation"
	case code == http.StatusPreconditionFailed:
		v.kind = hbackup.KindExists
	case code == http.StatusConflict:
		v.kind = hbackup.KindConflict
	case code == http.StatusRequestTimeout:
		v.kind = hbackup.KindTimeout
	case code == http.StatusTooManyRequests:
		v.kind, v.hint = hbackup.KindThrottled, "the store asks for fewer requests; lower the number of parallel transfers or try later"
	case code == http.StatusGone || code == 499:
		v.kind, v.hint = hbackup.KindUnavailable, "the upload session was lost; try again"
	case code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented:
		v.kind, v.hint = hbackup.KindUnsupported, "something that is not Google Cloud Storage has answered"
	case isDamage(api):
		v.kind, v.hint = hbackup.KindCorrupt, "bytes change between this machine and the store: check memory, network cards and proxies"
	case code >= 500:
		v.kind = hbackup.KindUnavailable
	}
	return v
}

// judgeConnection is for requests that got no answer, and for answers that broke
// off.
func (s *Store) judgeConnection(err error) verdict {
	var dns *net.DNSError
	var netErr net.Error
	var unknownCA x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var record tls.RecordHeaderError
	var sent *url.Error
	v := verdict{kind: hbackup.KindUnavailable}
	at := s.endpointName()
	switch {
	case errors.As(err, &dns):
		v.text = fmt.Sprintf("%s cannot be resolved: %v", at, dns)
		v.hint = "check the endpoint and the name service"
	case errors.As(err, &unknownCA):
		v.kind, v.text = hbackup.KindDenied, fmt.Sprintf("the certificate of %s: %v", at, unknownCA)
		v.hint = "if the store uses an authority of your own, name its certificate as the CA file"
	case errors.As(err, &wrongHost):
		v.kind, v.text = hbackup.KindDenied, fmt.Sprintf("the certificate of %s: %v", at, wrongHost)
		v.hint = "use the name that is in the certificate"
	case errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		v.kind, v.text = hbackup.KindUsage, fmt.Sprintf("%s does not speak TLS", at)
		v.hint = "is the endpoint plain http?"
	case errors.Is(err, syscall.ECONNREFUSED):
		v.text = fmt.Sprintf("%s refuses the connection", at)
		v.hint = "is the store running, and is the endpoint right?"
	case errors.Is(err, errStalled):
		v.kind, v.text = hbackup.KindTimeout, fmt.Sprintf("%s: %v", at, errStalled)
	case strings.Contains(err.Error(), "bad CRC"):
		v.kind, v.text = hbackup.KindCorrupt, "the bytes do not have the CRC32C that the store keeps"
	case strings.Contains(err.Error(), "partial request not satisfied"):
		v.kind, v.text = hbackup.KindUnsupported, "the store gave another range than was asked for"
		v.hint = "something that is not Google Cloud Storage has answered"
	case errors.As(err, &sent):
		// The URL of a resumable upload is a secret: whoever has it may go on with
		// the upload.
		v.text = fmt.Sprintf("%s: %v", at, sent.Err)
	case errors.As(err, &netErr), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errBroken):
		v.text = fmt.Sprintf("%s: the connection broke", at)
	default:
		v.kind, v.text = hbackup.KindOther, strings.Join(strings.Fields(err.Error()), " ")
	}
	return v
}

func (s *Store) endpointName() string {
	if s.c.Endpoint != "" {
		return s.c.Endpoint
	}
	return "Google Cloud Storage"
}

// mayPass reports errors after which the same request may succeed.
func mayPass(err error) bool {
	if errors.Is(err, errBroken) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if api := answerOf(err); api != nil && api.Code == http.StatusForbidden {
		return reasonOf(api, "userRateLimitExceeded", "rateLimitExceeded")
	}
	var sent *url.Error
	if errors.As(err, &sent) && errors.Is(sent.Err, io.EOF) {
		return true // the server has closed an idle connection
	}
	return gcs.ShouldRetry(err)
}

// failObject is fail for requests about one object. Where the object is missing it
// makes sure that the bucket is not.
func (s *Store) failObject(ctx context.Context, op string, key storage.Key, err error) error {
	if err != nil && isMissing(err) && ctx.Err() == nil {
		if err := s.checkBucket(ctx); err != nil {
			return err
		}
	}
	return s.fail(ctx, op, key, err)
}
