package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hbackup"
)

// Dump is every cell of a table as HBase's own client scanned it. Two tables
// with the same digest hold the same cells; the table's name and its regions
// have no part in it.
type Dump struct {
	Cells   int64  `json:"cells"`
	Markers int64  `json:"markers"` // of these, delete markers; 0 in a visible dump
	Digest  string `json:"digest"`  // SHA-256 of the lines, hex
	File    string `json:"-"`       // the lines: row, family, qualifier, timestamp, type, value, tags, with tabs between
}

// Dump scans the table. Raw: all versions that are still in files or memory and
// the delete markers. Otherwise what a reader sees, in all versions that the
// families keep.
func (h *HBase) Dump(ctx context.Context, table string, raw bool) (Dump, error) {
	var d Dump
	dir := h.dir.path("dumps")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return d, err
	}
	path, err := newFile(filepath.Join(dir, strings.ReplaceAll(table, ":", "=")+"-*.tsv"))
	if err != nil {
		return d, err
	}
	err = h.call(ctx, "dump", args{"table": table, "raw": raw, "file": path}, &d)
	d.File = path
	return d, err
}

// DiffDumps gives nil when both dumps have the same cells; else an error that
// shows the first lines that are in one only.
func DiffDumps(want, got Dump) error {
	if want.Cells == got.Cells && want.Digest == got.Digest {
		return nil
	}
	w, err := os.Open(want.File)
	if err != nil {
		return err
	}
	defer w.Close()
	g, err := os.Open(got.File)
	if err != nil {
		return err
	}
	defer g.Close()
	diff, err := diffLines(w, g, 20)
	return hbackup.E("compare dumps", "", hbackup.KindIncomplete,
		errors.Join(fmt.Errorf("%d cells wanted, %d there\n- only wanted (%s), + only there (%s):\n%s",
			want.Cells, got.Cells, want.File, got.File, diff), err))
}

// diffLines walks both texts in step. After a difference it looks a little way
// ahead in both for the next common line, so that a lost or added line does not
// make all that follow look different.
func diffLines(want, got io.Reader, limit int) (string, error) {
	const ahead = 200
	w, g := newPeeker(want), newPeeker(got)
	var out strings.Builder
	shown := 0
	show := func(mark string, lines []string) {
		for _, l := range lines {
			if shown < limit {
				fmt.Fprintf(&out, "%s %s\n", mark, l)
			}
			shown++
		}
	}
	for {
		a, b := w.fill(1), g.fill(1)
		switch {
		case len(a) == 0 && len(b) == 0:
			if shown > limit {
				fmt.Fprintf(&out, "… and %d more lines\n", shown-limit)
			}
			return out.String(), errors.Join(w.err(), g.err())
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			w.drop(1)
			g.drop(1)
		default:
			i, j := nextCommon(w.fill(ahead), g.fill(ahead))
			show("-", w.drop(i))
			show("+", g.drop(j))
		}
	}
}

// nextCommon gives how many lines to skip in a and b to get to the nearest
// line that both have; without one, all of them.
func nextCommon(a, b []string) (int, int) {
	at := map[string]int{}
	for j := len(b) - 1; j >= 0; j-- {
		at[b[j]] = j
	}
	bi, bj := len(a), len(b)
	for i, line := range a {
		if j, ok := at[line]; ok && i+j < bi+bj {
			bi, bj = i, j
		}
	}
	return bi, bj
}

// peeker reads lines with a look ahead.
type peeker struct {
	scanner *bufio.Scanner
	lines   []string
}

func newPeeker(r io.Reader) *peeker {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	return &peeker{scanner: s}
}

// fill gives the next n lines, fewer at the end, without taking them.
func (p *peeker) fill(n int) []string {
	for len(p.lines) < n && p.scanner.Scan() {
		p.lines = append(p.lines, p.scanner.Text())
	}
	return p.lines[:min(n, len(p.lines))]
}

// drop takes n lines.
func (p *peeker) drop(n int) []string {
	taken := p.lines[:n]
	p.lines = p.lines[n:]
	return taken
}

func (p *peeker) err() error { return p.scanner.Err() }
