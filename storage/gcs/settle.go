package gcs

import (
	"context"
	"net/http"
	"time"

	"hbackup"
)

// found is what a look at the object says of a put whose outcome is not clear.
type found int

const (
	foundNothing found = iota // there is no object
	foundOurs                 // the put has succeeded
	foundOther                // the object is somebody else's
	foundUnknown              // the store does not say
)

// settle finds out what became of a put that ended with err. Again says that the
// key was taken by somebody else and has become free since.
func (p *put) settle(ctx context.Context, err error) (modified time.Time, again bool, _ error) {
	taken := p.opts.IfAbsent && statusOf(err) == http.StatusPreconditionFailed
	if !p.last.Load() && !taken {
		return time.Time{}, false, p.fail(ctx, err)
	}
	exists := hbackup.E("put", p.loc.At(p.key), hbackup.KindExists, errTaken)
	switch found, modified := p.look(ctx); {
	case found == foundOurs:
		return modified, false, nil
	case found == foundOther && p.opts.IfAbsent:
		return time.Time{}, false, exists
	case found == foundNothing && taken:
		return time.Time{}, true, exists
	}
	return time.Time{}, false, p.fail(ctx, err)
}

// look finds out whether the put has succeeded after all. It goes on for a while
// when the caller has given up, because the caller wants to know.
func (p *put) look(ctx context.Context) (found, time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.c.settle)
	defer cancel()
	attrs, err := p.object(p.key).Attrs(ctx)
	switch {
	case err != nil && isMissing(err):
		return foundNothing, time.Time{}
	case err != nil:
		return foundUnknown, time.Time{}
	case attrs.Metadata[stampName] != p.stamp:
		return foundOther, time.Time{}
	case p.check(attrs) != nil:
		return foundUnknown, time.Time{} // not as it was sent: no success
	}
	return foundOurs, p.keepDigest(ctx, attrs.Name, attrs).Updated
}

// guard gives the context of the requests that may make the object visible. When
// the caller's context ends it ends at once if the last byte is still here, and a
// while later if it has left.
func (p *put) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !p.last.Load() {
			cancel()
			return
		}
		timer := time.AfterFunc(p.c.settle, cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() { stop(); cancel() }
}
