package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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
	if hbackup.KindOf(err) != hbackup.KindOther {
		return hbackup.E(op, path, hbackup.KindOther, err)
	}
	v := s.judge(err)
	out := hbackup.E(op, path, v.kind, &cause{text: v.text, err: err})
	if v.hint != "" {
		out.Hint = v.hint
	}
	return out
}

// cause is an error of the SDK with a text that fits on a line.
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

// judge classes an error of the SDK.
func (s *Store) judge(err error) verdict {
	var api smithy.APIError
	if errors.As(err, &api) {
		return s.judgeAnswer(api, err)
	}
	if status := statusOf(err); status != 0 {
		return s.judgeStatus(status, err)
	}
	return s.judgeConnection(err)
}

// verdicts are what the codes of S3 mean to an operator.
var verdicts = map[string]verdict{
	"NoSuchKey":     {kind: hbackup.KindNotFound},
	"NoSuchVersion": {kind: hbackup.KindNotFound},
	"NotFound":      {kind: hbackup.KindNotFound},
	// The bucket is part of the configuration. It must never look like an object
	// that is merely not there.
	"NoSuchBucket":       {kind: hbackup.KindUsage, hint: "create the bucket, or check its name, the region, the endpoint and the access key"},
	"InvalidBucketName":  {kind: hbackup.KindUsage, hint: "check the bucket's name"},
	"PreconditionFailed": {kind: hbackup.KindExists},
	"ObjectParentIsFile": {kind: hbackup.KindConflict, hint: "this store keeps objects as files and cannot have a key below another key"},
	"NoSuchUpload":       {kind: hbackup.KindConflict, hint: "somebody aborted the upload, or a lifecycle rule of the bucket did; such a rule must wait longer than the longest job"},

	"AccessDenied":          {kind: hbackup.KindDenied, hint: "the key is known, but a policy of the bucket or the user does not allow this; the rights that are needed are listed in the documentation"},
	"AllAccessDisabled":     {kind: hbackup.KindDenied, hint: "the bucket's owner has to enable access again"},
	"XAdminUserNotFound":    {kind: hbackup.KindDenied, hint: "the store does not know this access key; check the key and the endpoint"},
	"InvalidAccessKeyId":    {kind: hbackup.KindDenied, hint: "the store does not know this access key; check the key and the endpoint"},
	"SignatureDoesNotMatch": {kind: hbackup.KindDenied, hint: "the secret key does not belong to the access key, or a proxy changes requests on their way"},
	"ExpiredToken":          {kind: hbackup.KindDenied, hint: "the temporary key has expired; get a new one, or configure a role that is renewed on its own"},
	"InvalidToken":          {kind: hbackup.KindDenied, hint: "the session token does not belong to the key, or is missing"},
	"AuthorizationHeaderMalformed": {kind: hbackup.KindDenied,
		hint: "the region is probably another one; set it to the bucket's region"},

	"PermanentRedirect":                  {kind: hbackup.KindUsage, hint: "the bucket is in another region; set it, or use the endpoint of that region"},
	"TemporaryRedirect":                  {kind: hbackup.KindUnavailable, hint: "the bucket is new or moving; try again later or set its region"},
	"IllegalLocationConstraintException": {kind: hbackup.KindUsage, hint: "set the region to the bucket's"},

	"SlowDown":                   {kind: hbackup.KindThrottled, hint: "the store asks for fewer requests; lower the number of parallel transfers or try later"},
	"TooManyRequests":            {kind: hbackup.KindThrottled},
	"RequestLimitExceeded":       {kind: hbackup.KindThrottled},
	"InternalError":              {kind: hbackup.KindUnavailable},
	"ServiceUnavailable":         {kind: hbackup.KindUnavailable},
	"RequestTimeout":             {kind: hbackup.KindTimeout},
	"OperationAborted":           {kind: hbackup.KindUnavailable},
	"ConditionalRequestConflict": {kind: hbackup.KindUnavailable},

	"BadDigest":                 {kind: hbackup.KindCorrupt, hint: "bytes change between this machine and the store: check memory, network cards and proxies"},
	"IncompleteBody":            {kind: hbackup.KindUnavailable},
	"InvalidRange":              {kind: hbackup.KindUsage},
	"NotImplemented":            {kind: hbackup.KindUnsupported, hint: "the store does not know this part of S3; try another checksum dialect or path style"},
	"MethodNotAllowed":          {kind: hbackup.KindUnsupported},
	"XAmzContentSHA256Mismatch": {kind: hbackup.KindUnsupported, hint: "the store wants signed payloads; switch them on"},
	"EntityTooSmall":            {kind: hbackup.KindUnsupported, hint: "the store wants larger parts; raise the part size"},
	"EntityTooLarge":            {kind: hbackup.KindUnsupported, hint: "the store does not take objects of this size"},
	"QuotaExceeded":             {kind: hbackup.KindNoSpace, hint: "raise the quota or delete old backups"},
	"InsufficientStorage":       {kind: hbackup.KindNoSpace},
	"XMinioStorageFull":         {kind: hbackup.KindNoSpace},
	"InvalidObjectState":        {kind: hbackup.KindUnavailable, hint: "the object is in an archive class; restore it there first"},
	"KMS.DisabledException":     {kind: hbackup.KindDenied, hint: "the encryption key is disabled"},
	"KMS.NotFoundException":     {kind: hbackup.KindUsage, hint: "the encryption key does not exist"},
}

func (s *Store) judgeAnswer(api smithy.APIError, err error) verdict {
	code, status := api.ErrorCode(), statusOf(err)
	v, known := verdicts[code]
	if !known {
		v = s.judgeStatus(status, err)
	}
	v.text = code
	if m := strings.TrimSpace(api.ErrorMessage()); m != "" && m != "UnknownError" {
		v.text += ": " + m
	}
	if status != 0 {
		v.text += fmt.Sprintf(" (status %d%s)", status, requestID(err))
	}
	switch code {
	case "RequestTimeTooSkewed":
		v.kind = hbackup.KindDenied
		v.hint = "the clocks differ too much; set this machine's"
		if at, ok := dateOf(err); ok {
			v.hint = fmt.Sprintf("this machine's clock says %s, the store's %s; set the wrong one",
				time.Now().UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
		}
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "MovedPermanently":
		if r := headerOf(err, "X-Amz-Bucket-Region"); r != "" {
			v.hint = fmt.Sprintf("the bucket is in the region %s, not in %s; set the region", r, s.c.Region)
		}
	}
	return v
}

// judgeStatus is for answers without a code, such as those to HEAD.
func (s *Store) judgeStatus(status int, err error) verdict {
	v := verdict{text: fmt.Sprintf("status %d %s%s", status, http.StatusText(status), requestID(err))}
	switch {
	case status == 301 || status == 307 || status == 308:
		v.kind, v.hint = hbackup.KindUsage, verdicts["PermanentRedirect"].hint
		if r := headerOf(err, "X-Amz-Bucket-Region"); r != "" {
			v.hint = fmt.Sprintf("the bucket is in the region %s, not in %s; set the region", r, s.c.Region)
		}
	case status == 401 || status == 403:
		v.kind, v.hint = hbackup.KindDenied, "check the key, its rights and this machine's clock; without the right to list the bucket a missing object is answered like this, too"
	case status == 404 && codeOf(err) == "":
		v.kind = hbackup.KindNotFound // with a code that is not known, something else may be missing
	case status == 400 && (codeOf(err) == "" || codeOf(err) == "BadRequest"):
		v.kind, v.hint = hbackup.KindDenied, "the answer to HEAD has no details; the region, the session token or the key is probably wrong"
	case status == 412:
		v.kind = hbackup.KindExists
	case status == 409:
		v.kind = hbackup.KindConflict
	case status == 408:
		v.kind = hbackup.KindTimeout
	case status == 429:
		v.kind, v.hint = hbackup.KindThrottled, verdicts["SlowDown"].hint
	case status == 501 || status == 405:
		v.kind, v.hint = hbackup.KindUnsupported, verdicts["NotImplemented"].hint
	case status == 507:
		v.kind = hbackup.KindNoSpace
	case status >= 500:
		v.kind = hbackup.KindUnavailable
	}
	return v
}

// judgeConnection is for requests that got no answer.
func (s *Store) judgeConnection(err error) verdict {
	var dns *net.DNSError
	var sent *smithyhttp.RequestSendError
	var unknownCA x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var record tls.RecordHeaderError
	v := verdict{kind: hbackup.KindUnavailable}
	at := s.endpointName()
	switch {
	case errors.As(err, &dns):
		v.text = fmt.Sprintf("%s cannot be resolved: %v", at, dns)
		v.hint = "check the endpoint, the region and the name service"
	case errors.As(err, &unknownCA):
		v.kind, v.text = hbackup.KindDenied, fmt.Sprintf("the certificate of %s: %v", at, unknownCA)
		v.hint = "if the store uses an authority of your own, name its certificate as the CA file"
	case errors.As(err, &wrongHost):
		v.kind, v.text = hbackup.KindDenied, fmt.Sprintf("the certificate of %s: %v", at, wrongHost)
		v.hint = "use the name that is in the certificate, or path style"
	case errors.As(err, &record):
		v.kind, v.text = hbackup.KindUsage, fmt.Sprintf("%s does not speak TLS", at)
		v.hint = "is the endpoint plain http?"
	case errors.Is(err, syscall.ECONNREFUSED):
		v.text = fmt.Sprintf("%s refuses the connection", at)
		v.hint = "is the store running, and is the endpoint right?"
	case errors.Is(err, errStalled):
		v.kind, v.text = hbackup.KindTimeout, fmt.Sprintf("%s: %v", at, errStalled)
	case errors.As(err, &sent):
		v.text = fmt.Sprintf("%s: %v", at, sent.Err)
	default:
		v.kind, v.text = hbackup.KindOther, oneLine(err)
		if strings.Contains(v.text, "credential") || strings.Contains(v.text, "identity") {
			v.kind, v.hint = hbackup.KindDenied, "no usable key was found; name one under credentials, or use what the AWS tools use"
		}
	}
	return v
}

// oneLine gives the error's text without the SDK's own framing.
func oneLine(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func (s *Store) endpointName() string {
	if s.c.Endpoint != "" {
		return s.c.Endpoint
	}
	return "S3 in " + s.c.Region
}

func responseOf(err error) *smithyhttp.Response {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) {
		return re.Response
	}
	return nil
}

// statusOf gives the HTTP status of the answer, 0 if there was none.
func statusOf(err error) int {
	if r := responseOf(err); r != nil && r.Response != nil {
		return r.StatusCode
	}
	return 0
}

func headerOf(err error, name string) string {
	if r := responseOf(err); r != nil && r.Response != nil {
		return r.Header.Get(name)
	}
	return ""
}

func dateOf(err error) (time.Time, bool) {
	t, perr := http.ParseTime(headerOf(err, "Date"))
	return t, perr == nil
}

func requestID(err error) string {
	if id := headerOf(err, "X-Amz-Request-Id"); id != "" {
		return ", request " + id
	}
	return ""
}

// codeOf gives S3's own code for what went wrong, "" if there was no answer.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// isMissing reports an answer that says that there is no such object. A missing
// bucket is told apart where the answer has a code; the one to HEAD has none.
func isMissing(err error) bool {
	switch codeOf(err) {
	case "NoSuchKey", "NotFound", "NoSuchVersion":
		return true
	case "":
		return statusOf(err) == 404
	}
	return false
}
