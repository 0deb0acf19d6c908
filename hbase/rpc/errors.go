package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// errClosed is the cause of calls on a closed Client.
var errClosed = errors.New("the client is closed")

// RemoteError is an exception that a server answered with.
type RemoteError struct {
	Method     string // the call
	Class      string // full Java class name
	Message    string // one line, without the class and without a stack trace
	Server     string // host:port that answered
	Host       string // where a moved region is now, when the server says so
	Port       int32
	DoNotRetry bool // the server's own flag; see class.go for where it is not to be believed
	Overloaded bool // 2.5 and later
}

// Error gives "ShortClass: message".
func (e *RemoteError) Error() string {
	s := e.ShortClass()
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Server != "" {
		s += " (" + e.Server + ")"
	}
	return s
}

// ShortClass is the class without its package.
func (e *RemoteError) ShortClass() string {
	return e.Class[strings.LastIndexByte(e.Class, '.')+1:]
}

// is reports whether the exception's class is one of the short names.
func (e *RemoteError) is(short ...string) bool {
	for _, s := range short {
		if e.ShortClass() == s {
			return true
		}
	}
	return false
}

func remoteError(method string, peer Peer, e *hbpb.ExceptionResponse) *RemoteError {
	return &RemoteError{
		Method:     method,
		Class:      cleanLine(e.GetExceptionClassName(), 200),
		Message:    firstMessage(e.GetExceptionClassName(), e.GetStackTrace()),
		Server:     peer.Addr,
		Host:       e.GetHostname(),
		Port:       e.GetPort(),
		DoNotRetry: e.GetDoNotRetry(),
		Overloaded: e.GetServerOverloaded(),
	}
}

// firstMessage takes the message out of a Java stack trace: "class: message",
// lines of "\tat ...", or the message alone.
func firstMessage(class, trace string) string {
	if i := strings.Index(trace, "\n\tat "); i >= 0 {
		trace = trace[:i]
	}
	if i := strings.Index(trace, "\nCaused by: "); i >= 0 {
		trace = trace[:i]
	}
	trace = strings.TrimPrefix(trace, class)
	trace = strings.TrimPrefix(trace, ":")
	return cleanLine(trace, 500)
}

// cleanLine makes outside text fit for one line of an error: no control
// characters, no runs of spaces, valid UTF-8, at most limit bytes.
func cleanLine(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.ToValidUTF8(s, "?")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(s) > limit {
		cut := limit
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return s
}

// Phase says how far a call had come when its connection failed.
type Phase string

// The phases of a call.
const (
	PhaseDial      Phase = "dial"      // no connection
	PhaseHandshake Phase = "handshake" // before the first call
	PhaseSend      Phase = "send"      // the server has not seen the call
	PhaseAnswer    Phase = "answer"    // the server may have carried it out
	PhaseDecode    Phase = "decode"    // the answer cannot be read
	PhaseEncode    Phase = "encode"    // the request cannot be written
)

// ConnError is a call that got no answer from the server.
type ConnError struct {
	Peer  Peer
	Phase Phase
	Bare  bool // the server closed a new connection without a word
	Err   error
}

// Error names the address and what happened.
func (e *ConnError) Error() string {
	s := fmt.Sprintf("%s %s: ", e.Peer.Addr, e.Peer.Service)
	switch {
	case e.Bare:
		return s + "the server closed the connection without an answer"
	case errors.Is(e.Err, context.DeadlineExceeded):
		return s + "no answer in time"
	case errors.Is(e.Err, context.Canceled):
		return s + "cancelled while waiting for the answer"
	}
	return s + cleanLine(e.Err.Error(), 500)
}

// Unwrap gives the cause.
func (e *ConnError) Unwrap() error { return e.Err }

func (e *ConnError) kind() hbackup.Kind {
	switch {
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, errClosed):
		return hbackup.KindInterrupted
	case errors.Is(e.Err, context.DeadlineExceeded):
		return hbackup.KindTimeout
	case errors.Is(e.Err, errCorrupt):
		return hbackup.KindCorrupt
	case e.Phase == PhaseEncode:
		return hbackup.KindOther
	}
	return hbackup.KindUnavailable
}

// sent reports whether the server may have seen the call.
func (e *ConnError) sent() bool { return e.Phase == PhaseAnswer || e.Phase == PhaseDecode }

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// fail wraps what a public method returns. An error that is one of ours already
// keeps its kind and hint.
func (c *Client) fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	kind, hint := explain(err)
	wrapped := hbackup.E(op, path, kind, err)
	if hint != "" {
		wrapped.Hint = hint
	}
	return wrapped
}
