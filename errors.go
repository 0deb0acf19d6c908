package hbackup

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind classes an error by what its reader can do about it. Kinds are few and
// append-only: exit codes, metrics and retry decisions hang on them.
type Kind string

const (
	KindOther         Kind = ""               // not classed: a bug or a failure nobody foresaw
	KindUsage         Kind = "usage"          // bad command line or configuration
	KindNotFound      Kind = "not_found"      // no such object, table, cluster, backup
	KindExists        Kind = "exists"         // create-if-absent lost, or the target is there already
	KindConflict      Kind = "conflict"       // there is something else under that name
	KindBusy          Kind = "busy"           // somebody holds the lease, or the server is at it
	KindDenied        Kind = "denied"         // credentials missing, wrong or too weak
	KindUnavailable   Kind = "unavailable"    // cannot be reached, or says "later"; worth a retry
	KindThrottled     Kind = "throttled"      // the store asks for fewer requests; worth a slower retry
	KindTimeout       Kind = "timeout"        // no answer inside the deadline; the outcome is unknown
	KindCorrupt       Kind = "corrupt"        // bytes, size or digest are not what they must be
	KindIncomplete    Kind = "incomplete"     // something that must be there is missing
	KindNoSpace       Kind = "no_space"       // disk full or quota reached
	KindReadOnly      Kind = "read_only"      // the place takes no writes
	KindUnsupported   Kind = "unsupported"    // the server, store or format cannot do it
	KindOutsideWindow Kind = "outside_window" // the wished moment is not covered
	KindRefused       Kind = "refused"        // a safety rule of hbackup says no
	KindPartial       Kind = "partial"        // some items failed, the rest is good
	KindInterrupted   Kind = "interrupted"    // cancelled by the user or by a signal
)

// Error is the one error type that crosses package borders. Op is the step in a
// verb's own words ("read snapshot manifest"), Path the fully qualified thing it
// was done to, Hint the next thing to try. Err is the cause.
type Error struct {
	Op   string
	Path string
	Kind Kind
	Err  error
	Hint string
}

// Error gives one line: "op path: cause". The hint is not part of it; the
// command line prints it on a line of its own.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Path)
	}
	if e.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	} else if e.Kind != KindOther {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(strings.ReplaceAll(string(e.Kind), "_", " "))
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// E makes an Error; when kind is KindOther the cause's own kind is taken over.
func E(op, path string, kind Kind, cause error) *Error {
	if kind == KindOther {
		kind = KindOf(cause)
	}
	return &Error{Op: op, Path: path, Kind: kind, Err: cause}
}

// Errorf makes an Error whose cause is a formatted message.
func Errorf(op, path string, kind Kind, format string, args ...any) *Error {
	return E(op, path, kind, fmt.Errorf(format, args...))
}

// WithHint sets the next step to try and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// KindOf gives the kind of the outermost Error in the chain that has one.
// Context errors are classed as interrupted and timeout.
func KindOf(err error) Kind {
	for e := err; e != nil; {
		var he *Error
		if !errors.As(e, &he) {
			break
		}
		if he.Kind != KindOther {
			return he.Kind
		}
		e = he.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return KindInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	}
	return KindOther
}

// IsKind reports whether err is of one of the kinds.
func IsKind(err error, kinds ...Kind) bool {
	if err == nil {
		return false
	}
	k := KindOf(err)
	for _, want := range kinds {
		if k == want {
			return true
		}
	}
	return false
}

// HintOf gives the outermost hint in the chain, or "".
func HintOf(err error) string {
	for e := err; e != nil; {
		var he *Error
		if !errors.As(e, &he) {
			return ""
		}
		if he.Hint != "" {
			return he.Hint
		}
		e = he.Err
	}
	return ""
}

// Retryable reports whether the same call may succeed a little later.
func Retryable(err error) bool {
	return IsKind(err, KindUnavailable, KindThrottled, KindTimeout)
}
