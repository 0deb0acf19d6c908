package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hbackup"
	"hbackup/internal/ui"
)

// report writes an error for people to standard error and, in the JSON forms,
// for programs to standard output. In the form json that is only done when no
// document was written, so that there is always exactly one.
func (p *program) report(err error, code exitCode) {
	for _, e := range flatten(err) {
		fmt.Fprintf(p.console, "hbackup: %s\n", p.plain(e.Error()))
		if hint := hbackup.HintOf(e); hint != "" {
			fmt.Fprintf(p.console, "hint: %s\n", p.plain(hint))
		}
	}
	if p.format == formatTable || p.format == formatJSON && p.out.Written() > 0 {
		return
	}
	// When this cannot be written either, the exit code still says it.
	_ = ui.WriteLine(p.out, "error", "hbackup.error/1", errorDocument{ExitCode: int(code), Errors: p.errorsOf(err)})
}

// errorDocument is the form of a failure for programs.
type errorDocument struct {
	ExitCode int            `json:"exit_code"`
	Errors   []errorDetails `json:"errors"`
}

type errorDetails struct {
	Kind    string `json:"kind"` // hbackup's classes of errors; "" when not classed
	Op      string `json:"op,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (p *program) errorsOf(err error) []errorDetails {
	var all []errorDetails
	for _, e := range flatten(err) {
		d := errorDetails{Kind: string(hbackup.KindOf(e)), Message: p.plain(e.Error()), Hint: p.plain(hbackup.HintOf(e))}
		var typed *hbackup.Error
		if errors.As(e, &typed) {
			d.Op, d.Path = p.plain(typed.Op), p.plain(typed.Path)
		}
		all = append(all, d)
	}
	return all
}

// plain makes outside text one line without secrets.
func (p *program) plain(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ")
	return ui.OneLine(p.secrets.Text(s))
}

// quoteOdd quotes a word of the user's when it holds more than plain characters.
func quoteOdd(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '"' }) {
		return strconv.Quote(s)
	}
	return s
}
