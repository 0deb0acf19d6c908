package ui

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Align says to which side of its column a cell is pushed.
type Align int

const (
	Left Align = iota
	Right
)

// Column is the head of a column.
type Column struct {
	Name  string // written in capitals
	Align Align
}

// Table collects rows and writes them with aligned columns. A table without
// named columns has no head.
type Table struct {
	columns []Column
	rows    [][]string
	cells   []string // room for rows to come
}

// NewTable makes an empty table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Grow makes room for that many more rows.
func (t *Table) Grow(rows int) {
	t.rows = slices.Grow(t.rows, rows)
	t.cells = make([]string, rows*len(t.columns))
}

// Row adds a row. Missing cells are empty; more cells than columns are a bug.
func (t *Table) Row(cells ...string) {
	n := len(t.columns)
	if len(t.cells) < n {
		t.cells = make([]string, n)
	}
	row := t.cells[:n:n]
	t.cells = t.cells[n:]
	for i, c := range cells {
		row[i] = OneLine(c)
	}
	t.rows = append(t.rows, row)
}

// WriteTo writes the table; two spaces part the columns, and no line ends in spaces.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	head := make([]string, len(t.columns))
	named := false
	for i, c := range t.columns {
		head[i] = strings.ToUpper(c.Name)
		named = named || c.Name != ""
	}
	widths := make([]int, len(t.columns))
	size := 0
	measure := func(line []string) {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			size += len(cell)
		}
	}
	measure(head)
	for _, line := range t.rows {
		measure(line)
	}
	widest := slices.Max(append(widths, 0))
	for _, width := range widths {
		size += (1 + len(t.rows)) * (width/2 + 2) // about what the spaces come to
	}
	b := make([]byte, 0, size)
	spaces := strings.Repeat(" ", widest+2)
	write := func(line []string) {
		for i, cell := range line {
			if i > 0 {
				b = append(b, spaces[:2]...)
			}
			pad := spaces[:widths[i]-utf8.RuneCountInString(cell)]
			if t.columns[i].Align == Right {
				b = append(append(b, pad...), cell...)
			} else {
				b = append(append(b, cell...), pad...)
			}
		}
		b = append(bytes.TrimRight(b, " "), '\n')
	}
	if named {
		write(head)
	}
	for _, line := range t.rows {
		write(line)
	}
	n, err := w.Write(b)
	return int64(n), err
}
