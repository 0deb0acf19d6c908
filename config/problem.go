package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"hbackup"
)

// Source says which layer a value comes from. The later one wins.
type Source string

const (
	SourceDefault Source = "default"
	SourceFile    Source = "file"
	SourceEnv     Source = "env"
	SourceFlag    Source = "flag"
)

// Origin is where a value was written.
type Origin struct {
	Source Source `json:"source"`
	File   string `json:"file,omitempty"` // absolute; for SourceFile
	Line   int    `json:"line,omitempty"` // from 1; for SourceFile
	Name   string `json:"name,omitempty"` // of the variable or the flag
}

// String gives "file:line", "env NAME", "flag NAME" or "default".
func (o Origin) String() string {
	switch o.Source {
	case SourceFile:
		if o.Line == 0 {
			return o.File
		}
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case SourceEnv:
		return "env " + o.Name
	case SourceFlag:
		return "flag " + o.Name
	}
	return "default"
}

// Problem is one finding: where, which key, what is wrong, what to do.
type Problem struct {
	Origin Origin
	Key    string // path of the key; "" when the finding is about the whole
	Msg    string
	Hint   string
}

// err gives the problem as the error that crosses package borders.
func (p Problem) err() *hbackup.Error {
	e := hbackup.Errorf("read configuration", p.Origin.String(), hbackup.KindUsage, "%s", p.text())
	e.Hint = p.Hint
	return e
}

func (p Problem) text() string {
	if p.Key == "" {
		return p.Msg
	}
	return p.Key + ": " + p.Msg
}

// String gives "origin: key: message".
func (p Problem) String() string { return p.Origin.String() + ": " + p.text() }

// Error is every problem of a configuration, in the order of the file, then of
// the environment, then of the flags. There is at least one.
type Error struct{ Problems []Problem }

// Error gives the first problem and the number of others.
func (e *Error) Error() string {
	s := e.Problems[0].err().Error()
	if more := len(e.Problems) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more)", more)
	}
	return s
}

// Unwrap gives each problem as an *hbackup.Error of KindUsage.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p.err()
	}
	return errs
}

// problems collects findings while the configuration is read.
type problems struct{ list []Problem }

func (ps *problems) add(o Origin, key, hint, format string, args ...any) {
	ps.list = append(ps.list, Problem{Origin: o, Key: key, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// addErr adds a fault in a value.
func (ps *problems) addErr(o Origin, key string, err error) {
	hint := hbackup.HintOf(err)
	var h hintedError
	if errors.As(err, &h) {
		hint = h.hint
	}
	ps.add(o, key, hint, "%s", oneLine(err.Error()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plainPathError drops the operation and the path that the os package adds.
func plainPathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// readFull fills buf as far as the file goes.
func readFull(f *os.File, buf []byte) (int, error) {
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
