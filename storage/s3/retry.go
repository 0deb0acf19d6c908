package s3

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"hbackup"
)

// retryCodes are answers beyond the SDK's own list after which the same request
// may succeed.
var retryCodes = map[string]struct{}{
	"ConditionalRequestConflict": {}, // 409: another write to the key was under way
	"OperationAborted":           {},
	"BadDigest":                  {}, // the bytes were damaged on their way
	"InternalError":              {},
	"ServiceUnavailable":         {},
	"RequestTimeout":             {},
}

// expiredCodes say that the key is too old; a fresh one may be there already.
var expiredCodes = map[string]struct{}{
	"ExpiredToken":          {},
	"ExpiredTokenException": {},
	"TokenRefreshRequired":  {},
}

// newRetryer gives the SDK's retryer with pauses of ours and without its quota
// of retries, which would give up a long job for a short outage.
func newRetryer(c Config, keys *aws.CredentialsCache) aws.RetryerV2 {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = c.MaxAttempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
			return pause(c.backoff, attempt, err), nil
		})
		first := retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			return firstSay(err, keys)
		})
		o.Retryables = append([]retry.IsErrorRetryable{first}, o.Retryables...)
		o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: retryCodes})
	})
}

// firstSay decides before the SDK's own rules where those would not do.
func firstSay(err error, keys *aws.CredentialsCache) aws.Ternary {
	var dns *net.DNSError
	var api smithy.APIError
	switch {
	case hbackup.KindOf(err) != hbackup.KindOther:
		return aws.FalseTernary // an error of ours, such as a key that cannot be read
	case errors.Is(err, errReleased), errors.As(err, new(stoppedError)), errors.As(err, &dns) && dns.IsNotFound:
		return aws.FalseTernary
	case errors.Is(err, errStalled), errors.Is(err, io.ErrUnexpectedEOF):
		return aws.TrueTernary
	case errors.As(err, &api):
		if _, expired := expiredCodes[api.ErrorCode()]; expired && keys != nil {
			keys.Invalidate()
			return aws.TrueTernary
		}
	}
	return aws.UnknownTernary
}

// pause gives how long to wait after the given attempt: twice as long each time,
// five times as long when the store asked for fewer requests, and spread so that
// requests which failed together do not come back together.
func pause(unit time.Duration, attempt int, err error) time.Duration {
	if isThrottle(err) {
		unit *= 5
	}
	d := min(unit<<min(attempt-1, 10), 50*unit)
	return d/2 + rand.N(d/2+1)
}

func isThrottle(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return statusOf(err) == 429
	}
	_, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return ok || statusOf(err) == 429
}
