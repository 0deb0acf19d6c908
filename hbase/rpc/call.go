package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// callOptions says how a call may be treated.
type callOptions struct {
	slow     bool  // may wait for a lock on the server
	fragile  bool  // must not be sent again once the server may have seen it
	attempts int   // at most so many; 0: as Config.RetryFor allows
	seen     *bool // set when a server may have seen an attempt that brought no answer
}

// maxBareCloses bounds how often a new connection may be closed without a word
// before that counts as the answer: a wrong service looks just like it.
const maxBareCloses = 4

// callMaster sends a call to the active master. While the master is starting,
// failing over or unreachable it repeats, looking for the master again, for at
// most Config.RetryFor.
func (c *Client) callMaster(ctx context.Context, method string, req, resp proto.Message, o callOptions) error {
	return c.repeat(ctx, method, o, func(ctx context.Context) (func(), error) {
		master, err := c.findMaster(ctx)
		if err != nil {
			return func() {}, err
		}
		_, err = c.callServer(ctx, master, MasterService, method, req, resp, nil, o)
		return func() { c.forgetMaster(master) }, err
	})
}

// callServer sends one call to one server, once.
func (c *Client) callServer(ctx context.Context, server ServerName, service Service, method string, req, resp proto.Message, cells []byte, o callOptions) ([]byte, error) {
	limit := c.cfg.CallTimeout
	if o.slow {
		limit = c.cfg.SlowCallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.pool.get(ctx, Peer{server.Addr(), service})
	if err != nil {
		return nil, err
	}
	proto.Reset(resp)
	return conn.call(ctx, method, req, resp, cells)
}

// repeat makes attempts until one succeeds, fails for good, or the time is up.
// An attempt gives back what to do when its server should be looked for again.
func (c *Client) repeat(ctx context.Context, method string, o callOptions, attempt func(context.Context) (relocate func(), err error)) error {
	until := time.Now().Add(c.cfg.RetryFor)
	bare := 0
	for n := 0; ; n++ {
		relocate, err := attempt(ctx)
		if err == nil {
			return nil
		}
		if o.seen != nil && mayHaveArrived(err) {
			*o.seen = true
		}
		verdict := retryOf(err, !o.fragile)
		if verdict == retryLocate {
			relocate()
		}
		var lost *ConnError
		if errors.As(err, &lost) && lost.Bare {
			bare++
		}
		pause := c.wait.pause(n)
		switch {
		case ctx.Err() != nil:
			return interrupted(ctx, err)
		case verdict == retryNever && o.fragile:
			return outcomeUnknown(err)
		case verdict == retryNever, n+1 == o.attempts, bare >= maxBareCloses, time.Now().Add(pause).After(until):
			return err
		}
		c.cfg.Log.Debug("call repeated", "method", method, "attempt", n+1, "pause", pause, "error", err)
		if sleep(ctx, pause) != nil {
			return interrupted(ctx, err)
		}
	}
}

// interrupted gives the context's error together with the last real one.
func interrupted(ctx context.Context, last error) error {
	if errors.Is(last, ctx.Err()) {
		return last
	}
	return &gaveUp{cause: ctx.Err(), last: last}
}

// gaveUp is a context that ended while a call was being repeated. It is of the
// context's kind, and says what stood in the way.
type gaveUp struct{ cause, last error }

func (g *gaveUp) Error() string { return g.cause.Error() + "; last error: " + g.last.Error() }
func (g *gaveUp) Unwrap() error { return g.cause }
