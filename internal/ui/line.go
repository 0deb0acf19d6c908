package ui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hbackup"
)

// Line gives the state in one line:
// "backup: copy ns:orders, 42.0 %, 1.2 GiB of 2.9 GiB, 120 of 400 files, 52.1 MiB/s, 33s left".
func (s Snapshot) Line() string {
	var parts []string
	what := s.Stage
	if s.Item != "" {
		what = strings.TrimSpace(what + " " + s.Item)
	}
	if what != "" {
		parts = append(parts, what)
	}
	if s.Items > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d tables done", s.ItemsDone, s.Items))
	}
	if s.Bytes > 0 || s.Files > 0 {
		parts = append(parts,
			fmt.Sprintf("%d.%d %%", s.Permille/10, s.Permille%10),
			Bytes(s.BytesDone)+" of "+Bytes(s.Bytes),
			Count(s.FilesDone)+" of "+Plural(s.Files, "file", "files"))
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

// cut shortens a line to the width of a terminal; 0 means unknown.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:max(width-2, 0)]) + "…"
}
