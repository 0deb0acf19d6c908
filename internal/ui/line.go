package ui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hbackup"
)

// Line gives the state in one line:
// "backup: copy ns:orders, 42.0 %, 1.2 GiB of 2.9 GiB, 120 of 400 files, 100 there before, 52.1 MiB/s, 33s left".
func (s Snapshot) Line() string {
	what := s.Stage
	if s.Item != "" {
		what = strings.TrimSpace(what + " " + s.Item)
	}
	return s.line(what)
}

// maxFailedNames is how many of the tables that failed a line names.
const maxFailedNames = 3

func (s Snapshot) line(what string) string {
	var parts []string
	if what != "" {
		parts = append(parts, what)
	}
	if s.Items > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d tables done", s.ItemsDone, s.Items))
	}
	if n := len(s.Failed); n > 0 {
		names := strings.Join(s.Failed[:min(n, maxFailedNames)], " ")
		if n > maxFailedNames {
			names += " …"
		}
		parts = append(parts, fmt.Sprintf("%d failed (%s)", n, names))
	}
	if s.Bytes > 0 || s.Files > 0 {
		parts = append(parts, percent(s.Permille), far(work{
			expect: counts{s.Files, s.Bytes}, done: counts{s.FilesDone, s.BytesDone}, reused: counts{s.FilesReused, s.BytesReused}}))
	}
	if s.Rate > 0 {
		parts = append(parts, Bytes(s.Rate)+"/s")
	}
	if s.HasEstimate {
		parts = append(parts, span(s.Remaining)+" left")
	} else {
		parts = append(parts, hbackup.FormatDuration(s.Elapsed)+" so far")
	}
	return OneLine(s.Verb + ": " + strings.Join(parts, ", "))
}

// Lines gives the state in at most so many lines: one for the whole, and one for each
// table at work when there is more than one table.
func (s Snapshot) Lines(most int) []string {
	if s.Items < 2 || most < 2 || len(s.AtWork) == 0 {
		return []string{s.Line()}
	}
	lines := []string{s.line("")}
	shown := s.AtWork
	if len(shown) > most-1 {
		shown = shown[:most-2] // one line for those that are left out
	}
	width := 0
	for _, i := range shown {
		width = max(width, utf8.RuneCountInString(OneLine(i.Name)))
	}
	for _, i := range shown {
		line := fmt.Sprintf("  %-*s  %s", width, OneLine(i.Name), OneLine(i.Stage))
		if i.expect != (counts{}) {
			line += " " + percent(share(i.done, i.expect)) + ", " + far(i.work)
		}
		lines = append(lines, line)
	}
	if n := len(s.AtWork) - len(shown); n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more at work", n))
	}
	return lines
}

func percent(permille int) string { return fmt.Sprintf("%d.%d %%", permille/10, permille%10) }

// far says how far something is, in bytes and in files.
func far(w work) string {
	s := Bytes(w.done.bytes) + " of " + Bytes(w.expect.bytes) + ", " + Count(w.done.files) + " of " + Plural(w.expect.files, "file", "files")
	if w.reused.files > 0 {
		s += ", " + Count(w.reused.files) + " there before"
	}
	return s
}

// cut shortens a line to the width of a terminal; 0 means unknown.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:max(width-2, 0)]) + "…"
}
