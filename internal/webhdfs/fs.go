package webhdfs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/internal/hadoop"
)

// FS is the file system of an HDFS. Errors carry an hbackup.Kind and the fully
// qualified path; a missing file is KindNotFound and nothing else is. All methods
// may be called from many goroutines at once. The context given to Open or Create
// rules the reader or writer until its end; each has one user at a time.
type FS struct {
	cfg       Config
	transport *http.Transport
	waiter    *hadoop.Waiter
	active    atomic.Pointer[string] // the address that answered last
	gateway   atomic.Bool            // it is HttpFS, which knows no options of a rename
}

// New gives the file system without asking anybody.
func New(cfg Config) (*FS, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := cfg.transport()
	if err != nil {
		return nil, err
	}
	h := &FS{cfg: cfg, transport: t}
	h.waiter = hadoop.Patience{RetryFor: cfg.RetryFor, StartFor: cfg.StartFor, Log: cfg.Log}.NewWaiter(h.URI())
	return h, nil
}

// URI gives the file system without a path, "hdfs://host:8020": the way to it is
// no part of its name.
func (h *FS) URI() string { return "hdfs://" + h.cfg.Authority }

func (h *FS) uri(path string) string { return h.URI() + path }

// Close ends the idle connections. Readers and writers that are still open stay
// usable.
func (h *FS) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// call is one call of a name node.
type call struct {
	op     string // in an error's words
	method string
	path   string
	query  url.Values // with the key op
	once   bool       // not to be repeated when it is unknown whether it was done
	stream bool       // the body of a good answer goes on after the call
}

func query(op string, more ...string) url.Values {
	q := url.Values{"op": {op}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return q
}

// lost marks the error of a call whose answer was lost: it may have been done.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

func (l lost) Is(target error) bool { return target == files.ErrAnswerLost }

func isLost(err error) bool { return errors.As(err, new(lost)) }

// ask makes a call and hands its good answer, which may be a redirect, to accept;
// again and again while no name node can answer. What accept fails with counts as a
// lost answer, unless it is of a kind.
func (h *FS) ask(ctx context.Context, c call, accept func(*http.Response) error) error {
	for wait := h.waiter.Begin(); ; {
		err := h.askEach(ctx, c, accept)
		switch {
		case err == nil:
			h.waiter.Served()
			return nil
		case c.once && isLost(err):
			return lost{h.explain(ctx, c.op, c.path, err).WithHint("the name node's answer was lost, so it may have been done; look before trying again")}
		case !hbackup.Retryable(err) || !wait.Again(ctx, err):
			return h.explain(ctx, c.op, c.path, err)
		}
	}
}

// askEach asks one address after the other, the active one first, until one has
// said more than that it cannot.
func (h *FS) askEach(ctx context.Context, c call, accept func(*http.Response) error) (err error) {
	for _, address := range h.addresses() {
		if err = h.askOne(ctx, address, c, accept); err == nil {
			h.active.Store(&address)
			return nil
		}
		if !hbackup.Retryable(err) || c.once && isLost(err) {
			return err
		}
	}
	return err
}

func (h *FS) addresses() []string {
	active := h.active.Load()
	if active == nil {
		return h.cfg.Addresses
	}
	all := []string{*active}
	for _, a := range h.cfg.Addresses {
		if a != *active {
			all = append(all, a)
		}
	}
	return all
}

func (h *FS) askOne(ctx context.Context, address string, c call, accept func(*http.Response) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	silent := time.AfterFunc(h.cfg.CallTimeout, func() { cancel(errSilent) })
	streaming := false
	defer func() {
		if silent.Stop(); !streaming {
			cancel(nil)
		}
	}()
	req, err := h.request(ctx, address, c)
	if err != nil {
		return err
	}
	resp, err := h.send(req)
	if err != nil {
		return h.failure(ctx, c.op, c.path, err)
	}
	h.waiter.Heard()
	if resp.StatusCode >= 400 {
		defer drain(resp)
		return h.refusal(c.op, c.path, resp)
	}
	err = accept(resp)
	if streaming = err == nil && c.stream && !isRedirect(resp); streaming {
		return nil
	}
	drain(resp)
	if err == nil || errors.As(err, new(*hbackup.Error)) {
		return err
	}
	return h.failure(ctx, c.op, c.path, &exchangeError{req.URL.Host, err, true})
}

// request makes the request of a call. The path is given percent-encoded where a
// server might take a character for its own.
func (h *FS) request(ctx context.Context, address string, c call) (*http.Request, error) {
	q := url.Values{}
	for key, values := range c.query {
		q[key] = values
	}
	if h.cfg.Token == nil {
		q.Set("user.name", h.cfg.User)
	} else {
		token, err := h.cfg.Token()
		if err != nil {
			return nil, err
		}
		q.Set("delegation", token)
	}
	return http.NewRequestWithContext(ctx, c.method, address+prefix+escape(c.path)+"?"+q.Encode(), nil)
}

const prefix = "/webhdfs/v1"

// escape keeps letters, digits, slashes and a few signs.
func escape(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// check is what every call asks first.
func (h *FS) check(ctx context.Context, op, path string) error {
	if err := files.CheckPath(op, h.uri(path), path); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return h.explain(ctx, op, path, context.Cause(ctx))
	}
	return nil
}
