package webhdfs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// Create makes a file that is not there yet. The path must be the caller's own, such
// as a random one: after a failure whatever is under it is removed, as nobody tells
// who made it. The context rules the Writer until its end.
//
// The name node says which data node takes the bytes; whether the file can be made
// comes out there, so it is said by Write or Close.
func (h *FS) Create(ctx context.Context, path string) (*Writer, error) {
	const op = "create"
	if err := h.check(ctx, op, path); err != nil {
		return nil, err
	}
	if err := files.CheckNotRoot(op, h.uri(path), path); err != nil {
		return nil, err
	}
	at, err := h.whereToWrite(ctx, path)
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancelCause(ctx)
	out, in := io.Pipe()
	w := &Writer{fs: h, ctx: ctx, own: own, cancel: cancel, path: path, in: in, body: &upload{r: out}, done: make(chan struct{})}
	go w.send(at)
	return w, nil
}

// whereToWrite gives the URL that a file's bytes go to. It may hold a token.
func (h *FS) whereToWrite(ctx context.Context, path string) (at *url.URL, err error) {
	q := query("CREATE", "overwrite", "false", "permission", strconv.FormatUint(uint64(h.cfg.FileMode.Perm()), 8))
	if h.cfg.Replication > 0 {
		q.Set("replication", strconv.Itoa(h.cfg.Replication))
	}
	if h.cfg.BlockSize > 0 {
		q.Set("blocksize", strconv.FormatInt(h.cfg.BlockSize, 10))
	}
	c := call{op: "create", method: http.MethodPut, path: path, query: q}
	err = h.ask(ctx, c, func(resp *http.Response) (err error) {
		if !isRedirect(resp) {
			return hbackup.Errorf("create", h.uri(path), hbackup.KindUnsupported, "%s answers %s without saying where the bytes go", resp.Request.URL.Host, resp.Status)
		}
		if at, err = redirect(resp.Request.URL, resp); err != nil {
			return err
		}
		h.gateway.Store(at.Query().Get("data") == "true") // HttpFS redirects to itself
		return nil
	})
	return at, err
}

// Writer is a file being written. Exactly one of Close and Abort ends it.
type Writer struct {
	fs     *FS
	ctx    context.Context // of the caller
	own    context.Context // ends with the sending
	cancel context.CancelCauseFunc
	path   string

	in   *io.PipeWriter
	body *upload
	done chan struct{} // closed when the sending is over, then sent says how
	sent error         // nil: the data node has made the file

	written int64
	info    files.Info
	ended   bool
}

// upload is the body of the request. It knows whether all of it was taken, and
// outlives a connection that could not be made.
type upload struct {
	r           *io.PipeReader
	begun, ends atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	u.begun.Store(true)
	n, err := u.r.Read(p)
	if err == io.EOF {
		u.ends.Store(true)
	}
	return n, err
}

// Close is called by the transport at the end of each try.
func (u *upload) Close() error { return nil }

// maxDials is how many data nodes are tried until one can be connected to.
const maxDials = 4

// send makes the request that carries the bytes.
func (w *Writer) send(at *url.URL) {
	err := w.sendTo(at)
	for tries := 1; err != nil && tries < maxDials && !w.body.begun.Load() && notConnected(err) && w.own.Err() == nil; tries++ {
		if at, err = w.fs.whereToWrite(w.own, w.path); err == nil {
			err = w.sendTo(at)
		}
	}
	if err == nil && !w.body.ends.Load() {
		err = hbackup.Errorf("write", w.fs.uri(w.path), hbackup.KindUnavailable, "the data node says that the file is whole before it has all of it")
	}
	w.sent = err
	reason := err
	if reason == nil {
		reason = io.ErrClosedPipe
	}
	w.body.r.CloseWithError(reason) // for a Write that waits
	close(w.done)
}

func notConnected(err error) bool {
	var exchange *exchangeError
	return errors.As(err, &exchange) && !exchange.sent
}

func (w *Writer) sendTo(at *url.URL) error {
	const op = "write"
	req, err := http.NewRequestWithContext(w.own, http.MethodPut, at.String(), w.body)
	if err != nil {
		return errors.New("the name node's redirect cannot be followed")
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	// The head goes out at once, so that the file is made while the body is still being
	// got, and there to be removed when that fails.
	req.Header.Set("Expect", "100-continue")
	resp, err := w.fs.send(req)
	if err != nil {
		return w.fs.failure(w.own, op, w.path, err)
	}
	defer drain(resp)
	switch {
	case resp.StatusCode == http.StatusCreated || resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode >= 400:
		return w.fs.refusal(op, w.path, resp)
	}
	return hbackup.Errorf(op, w.fs.uri(w.path), hbackup.KindUnsupported, "the data node %s answers %s", at.Host, resp.Status)
}

// Write adds to the file. After its first error it gives that one again.
func (w *Writer) Write(p []byte) (int, error) {
	stalled := time.AfterFunc(w.fs.cfg.DataTimeout, func() { w.cancel(errStalled) })
	n, err := w.in.Write(p)
	stalled.Stop()
	w.written += int64(n)
	if err != nil {
		<-w.done
		if w.sent != nil {
			err = w.sent
		}
		return n, w.fs.explain(w.own, "write", w.path, err)
	}
	return n, nil
}

// completeFor is how long a data node may take to close the file.
const completeFor = 2 * time.Minute

// Close makes the file whole and checks that it has every byte. After an error the
// file is removed.
func (w *Writer) Close() error {
	const op = "close"
	if w.ended {
		return hbackup.E(op, w.fs.uri(w.path), hbackup.KindOther, files.ErrEnded)
	}
	w.in.Close()
	late := time.AfterFunc(completeFor, func() { w.cancel(errSilent) })
	<-w.done
	late.Stop()
	err := w.sent
	if err == nil {
		err = w.verify()
	}
	if err != nil {
		err = w.fs.explain(w.own, op, w.path, err)
		w.discard(err)
		return err
	}
	w.ended = true
	w.cancel(errDiscarded)
	return nil
}

// Info describes the file as it was after Close.
func (w *Writer) Info() files.Info { return w.info }

// verify asks the name node what the file has become. A connection that broke looks
// to a data node like the end of the file.
func (w *Writer) verify() error {
	info, err := w.fs.Stat(w.ctx, w.path)
	if err != nil {
		return err
	}
	w.info = info
	if info.Size != w.written {
		return hbackup.Errorf("close", w.fs.uri(w.path), hbackup.KindCorrupt, "%d bytes written but the file holds %d", w.written, info.Size)
	}
	return nil
}

// Abort gives up and removes what was written.
func (w *Writer) Abort() error {
	if w.ended {
		return hbackup.E("abort", w.fs.uri(w.path), hbackup.KindOther, files.ErrEnded)
	}
	return w.discard(errDiscarded)
}

var errDiscarded = errors.New("the writer was aborted")

// removeFor bounds the clearing away after a failure, and removeTries how often it
// is looked for a file that a data node may be making in this moment.
const (
	removeFor   = 30 * time.Second
	removeTries = 4
)

// discard ends the request and removes the file, even when the context has ended.
func (w *Writer) discard(reason error) error {
	w.ended = true
	w.cancel(errDiscarded)
	w.in.CloseWithError(reason)
	<-w.done
	if hbackup.IsKind(w.sent, hbackup.KindExists) {
		return nil // it is not ours
	}
	known := w.sent == nil || !isLost(w.sent) // what the data node has made of it
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), removeFor)
	defer cancel()
	for try := 1; ; try++ {
		was, err := w.fs.remove(ctx, w.path)
		if was || err != nil || known || try == removeTries {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond << (2 * try)):
		}
	}
}
