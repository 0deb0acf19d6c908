package webhdfs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// Open opens a file for one pass from the given offset. The reader fails with
// KindIncomplete when it ends before the length in Info.
//
// A connection that breaks is made anew where it broke. The bytes are asked for by
// the file's number, so that they are always those of the file that Info describes;
// and because a name node changes names on the way to a data node (it brings
// letters with accents into one of their two forms).
func (h *FS) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, files.Info, error) {
	const op = "open"
	if err := h.check(ctx, op, path); err != nil {
		return nil, files.Info{}, err
	}
	info, err := h.Stat(ctx, path)
	if err != nil {
		return nil, files.Info{}, err
	}
	if err := files.CheckReadable(op, h.uri(path), info, offset); err != nil {
		return nil, files.Info{}, err
	}
	own, cancel := context.WithCancelCause(ctx)
	r := &reader{fs: h, ctx: ctx, own: own, cancel: cancel, path: path, info: info, pos: offset}
	// An empty file is asked for its bytes, too: one that is being written looks empty.
	if offset < info.Size || info.Size == 0 {
		err := r.open(op)
		if hbackup.Retryable(err) {
			r.reopen(err)
			err = r.err
		}
		if err != nil {
			r.Close()
			return nil, files.Info{}, err
		}
	}
	return r, info, nil
}

// reader reads a file once, forwards.
type reader struct {
	fs     *FS
	ctx    context.Context // of the caller
	own    context.Context // of the connection
	cancel context.CancelCauseFunc
	path   string
	info   files.Info
	pos    int64 // of the next byte

	body    io.ReadCloser // nil: none
	host    string
	err     error // final
	fails   int   // since the last progress
	failing time.Time
}

// maxHops is how many redirects lead to the bytes: a name node's to a data node,
// and one of a proxy between.
const maxHops = 3

// open gets the bytes from the position on.
func (r *reader) open(op string) error {
	r.drop()
	r.own, r.cancel = context.WithCancelCause(r.ctx)
	late := time.AfterFunc(r.fs.cfg.CallTimeout+r.fs.waiter.RetryFor, func() { r.cancel(errSilent) })
	defer late.Stop()
	var at *url.URL // of a data node; nil: the answer has the bytes in it
	c := call{op: op, method: http.MethodGet, path: r.source(), query: query("OPEN", "offset", strconv.FormatInt(r.pos, 10)), stream: true}
	err := r.fs.ask(r.own, c, func(resp *http.Response) (err error) {
		if isRedirect(resp) {
			at, err = redirect(resp.Request.URL, resp)
			return err
		}
		return r.take(op, resp)
	})
	if err != nil || at == nil {
		return r.gone(op, err)
	}
	for hop := 1; ; hop++ {
		req, err := http.NewRequestWithContext(r.own, http.MethodGet, at.String(), nil)
		if err != nil {
			return hbackup.Errorf(op, r.fs.uri(r.path), hbackup.KindUnsupported, "the name node's redirect cannot be followed")
		}
		resp, err := r.fs.send(req)
		if err != nil {
			return r.fs.explain(r.own, op, r.path, err)
		}
		switch {
		case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent:
			return r.take(op, resp)
		case isRedirect(resp) && hop < maxHops:
			at, err = redirect(resp.Request.URL, resp)
		case resp.StatusCode >= 400:
			err = r.fs.refusal(op, r.path, resp)
		default:
			err = hbackup.Errorf(op, r.fs.uri(r.path), hbackup.KindUnsupported, "%s answers %s", at.Host, resp.Status)
		}
		drain(resp)
		if err != nil {
			return r.gone(op, r.fs.explain(r.own, op, r.path, err))
		}
	}
}

// source gives the path that is asked for bytes.
func (r *reader) source() string {
	if r.info.ID == 0 { // the server does not tell it
		return r.path
	}
	return inode(r.info.ID)
}

// gone turns the news that there is no such file any more into what it means.
func (r *reader) gone(op string, err error) error {
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return hbackup.E(op, r.fs.uri(r.path), hbackup.KindConflict, files.ErrReplaced)
	}
	return err
}

// take takes the answer's body if it can be that of the file.
func (r *reader) take(op string, resp *http.Response) error {
	want := r.info.Size - r.pos
	if resp.ContentLength >= 0 && resp.ContentLength != want {
		resp.Body.Close()
		if r.info.ID != 0 || r.checkSame() == nil {
			return hbackup.E(op, r.fs.uri(r.path), hbackup.KindUnsupported, files.ErrOpenForWriting).
				WithHint("its end is not known before it is closed; a file left open by a dead writer is closed by hdfs debug recoverLease -path")
		}
		return hbackup.E(op, r.fs.uri(r.path), hbackup.KindConflict, files.ErrReplaced)
	}
	r.body, r.host = resp.Body, resp.Request.URL.Host
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		switch {
		case r.err != nil:
			return 0, r.err
		case len(p) == 0:
			return 0, nil
		case r.pos == r.info.Size:
			r.err = io.EOF
			return 0, r.err
		case r.ctx.Err() != nil:
			r.err = r.fs.explain(r.ctx, "read", r.path, context.Cause(r.ctx))
			return 0, r.err
		}
		n, err := r.step(p[:min(int64(len(p)), r.info.Size-r.pos)])
		if n > 0 {
			r.pos += int64(n)
			r.fails = 0
			return n, nil // an error comes again
		}
		if err != nil {
			r.reopen(err)
		}
	}
}

// step reads from the connection.
func (r *reader) step(p []byte) (int, error) {
	stalled := time.AfterFunc(r.fs.cfg.DataTimeout, func() { r.cancel(errStalled) })
	defer stalled.Stop()
	n, err := r.body.Read(p)
	if err == io.EOF {
		err = errShort
	}
	if err != nil {
		err = &exchangeError{r.host, withoutURL(err), true}
	}
	return n, err
}

var errShort = errors.New("the file ends early")

// reopen goes on behind a break, or gives up after RetryFor without a new byte, or
// when it is told more than that there is no answer.
func (r *reader) reopen(cause error) {
	typed := r.fs.explain(r.own, "read", r.path, cause)
	for r.err == nil {
		if r.fails++; r.fails == 1 {
			r.failing = time.Now()
		}
		pause := min(100*time.Millisecond<<min(r.fails-1, 6), 5*time.Second)
		if time.Since(r.failing)+pause > r.fs.waiter.RetryFor {
			r.err = typed
			if errors.Is(cause, errShort) {
				r.err = hbackup.Errorf("read", r.fs.uri(r.path), hbackup.KindIncomplete, "the file ends at byte %d of %d", r.pos, r.info.Size)
			}
			return
		}
		select {
		case <-r.ctx.Done():
			r.err = r.fs.explain(r.ctx, "read", r.path, context.Cause(r.ctx))
			return
		case <-time.After(pause):
		}
		err := r.open("read")
		if err == nil && r.info.ID == 0 {
			err = r.checkSame()
		}
		if err == nil {
			return
		}
		if !hbackup.Retryable(err) {
			r.err = err
		}
	}
}

// checkSame compares the file with the one that was opened first, where files have
// no numbers: it was the same before the first request for bytes and is after this
// one, so both were answered from it.
func (r *reader) checkSame() error {
	now, err := r.fs.Stat(r.ctx, r.path)
	switch {
	case err != nil:
		return err
	case now.Size != r.info.Size || !now.Modified.Equal(r.info.Modified):
		return hbackup.E("read", r.fs.uri(r.path), hbackup.KindConflict, files.ErrReplaced)
	}
	return nil
}

// drop lets the connection go.
func (r *reader) drop() {
	r.cancel(errDiscarded)
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

func (r *reader) Close() error {
	r.drop()
	r.err = errReaderClosed
	return nil
}

var errReaderClosed = errors.New("the reader is closed")
