package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// payload is the body of one request over all its attempts: bytes in a buffer
// that is given back once the request is over. The transport may go on reading
// for a moment after it has answered, so each attempt reads through a reader of
// its own and release waits until none of them looks at the buffer any more.
//
// A payload with a guard also decides what a cancellation means. Before the last
// byte was handed to the transport the store cannot have made the object
// visible, and the request ends at once. After it the store may have, and the
// request gets a little longer to hear the answer.
type payload struct {
	data []byte

	mu       sync.Mutex
	idle     sync.Cond // signalled when lent reaches 0
	lent     int       // slices that connections are writing at the moment
	released bool
	attempts int
	stopped  error // set when the caller's context ended; no other attempt begins
	sent     bool  // the last byte of an attempt has left, and no other attempt has begun
	left     int   // how often the last byte has left
	refused  int   // how often the answer to it was that nothing was done
}

func newPayload(data []byte) *payload {
	p := &payload{data: data}
	p.idle.L = &p.mu
	return p
}

type payloadKey struct{}

// with makes the payload travel with the requests that are made under ctx.
func (p *payload) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, payloadKey{}, p)
}

func payloadOf(ctx context.Context) *payload {
	p, _ := ctx.Value(payloadKey{}).(*payload)
	return p
}

// begin counts an attempt; it fails when the caller has given up.
func (p *payload) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts++
	p.sent = false
	switch {
	case p.released:
		return errReleased
	case p.stopped != nil:
		return stoppedError{p.stopped}
	case len(p.data) == 0:
		p.sent = true
		p.left++
	}
	return nil
}

// stoppedError says that no other attempt is made.
type stoppedError struct{ error }

func (e stoppedError) Unwrap() error { return e.error }

// answered notes an answer to the attempt that is under way.
func (p *payload) answered(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent && (status >= 400 && status < 500 || status == http.StatusServiceUnavailable) {
		p.refused++
	}
}

// stop tells that the caller gave up, and reports whether the last byte was
// still here. In that case it never leaves.
func (p *payload) stop(cause error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = cause
	return !p.sent
}

// maybeVisible reports whether the store may have got all bytes of an attempt.
func (p *payload) maybeVisible() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left > 0
}

// landings gives the number of attempts that may have stored the bytes.
func (p *payload) landings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left - p.refused
}

// tries gives the number of attempts made.
func (p *payload) tries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts
}

// release makes every reader fail from now on and returns when the buffer is
// free to be used for something else.
func (p *payload) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = true
	for p.lent > 0 {
		p.idle.Wait()
	}
}

// open gives the bytes to one attempt.
func (p *payload) open() *payloadReader { return &payloadReader{p: p} }

type payloadReader struct {
	p  *payload
	at int
}

// Read copies the next bytes.
func (r *payloadReader) Read(b []byte) (int, error) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	next, err := r.next(len(b))
	return copy(b, next), err
}

// lend gives up to n of the next bytes themselves. The borrower calls back when
// done with them.
func (r *payloadReader) lend(n int) ([]byte, error) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	next, err := r.next(n)
	if err == nil {
		r.p.lent++
	}
	return next, err
}

func (r *payloadReader) back() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if r.p.lent--; r.p.lent == 0 {
		r.p.idle.Broadcast()
	}
}

// next advances by up to n bytes. The caller holds the lock.
func (r *payloadReader) next(n int) ([]byte, error) {
	p := r.p
	switch {
	case p.released:
		return nil, errReleased
	case r.at == len(p.data):
		return nil, io.EOF
	case p.stopped != nil:
		return nil, p.stopped
	}
	next := p.data[r.at:min(r.at+n, len(p.data))]
	if r.at += len(next); r.at == len(p.data) {
		p.sent = true
		p.left++
	}
	return next, nil
}

// Close does nothing: the bytes belong to the payload.
func (r *payloadReader) Close() error { return nil }

// newReplaced gives the SDK a body to take the length of. What is sent are the
// payload's own readers, one for each attempt.
func newReplaced(data []byte) io.ReadSeeker { return bytes.NewReader(data) }
