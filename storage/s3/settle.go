package s3

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// found is what a look at the object says of a put whose outcome is not clear.
type found int

const (
	foundNothing found = iota // there is no object
	foundOurs                 // the put has succeeded
	foundOther                // the object is somebody else's
	foundUnknown              // the store does not say
)

// look finds out whether the put has succeeded after all. It goes on for a while
// when the caller has given up, because the caller wants to know.
func (p *put) look(ctx context.Context) (found, time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.c.settle)
	defer cancel()
	out, err := p.ops.headObject.call(ctx, &s3.HeadObjectInput{
		Bucket: &p.c.Bucket, Key: &p.name, ChecksumMode: types.ChecksumModeEnabled,
	})
	switch {
	case err != nil && isMissing(err):
		return foundNothing, time.Time{}
	case err != nil:
		return foundUnknown, time.Time{}
	case out.Metadata[stampName] != p.stamp:
		return foundOther, time.Time{}
	case out.ContentLength == nil || *out.ContentLength != p.opts.Size || p.checkStored(out.ChecksumCRC64NVME) != nil:
		return foundUnknown, time.Time{} // not as it was sent: no success
	}
	if out.LastModified != nil {
		return foundOurs, *out.LastModified
	}
	return foundOurs, time.Time{}
}

// isRefusal reports an answer that means that nothing was done.
func isRefusal(err error) bool {
	status := statusOf(err)
	return status >= 400 && status < 500 && status != 408 && status != 409 && status != 412
}

// guard gives the context of a request that may make an object visible. When the
// caller's context ends it ends at once if the last byte of the load is still
// here, and a while later if it has left. A nil load counts as having left.
func (s *Store) guard(ctx context.Context, load *payload) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if load == nil || !load.stop(cause) {
			timer := time.AfterFunc(s.c.settle, func() { cancel(cause) })
			context.AfterFunc(out, func() { timer.Stop() })
			return
		}
		cancel(cause)
	})
	return out, func() { stop(); cancel(errors.New("done")) }
}
