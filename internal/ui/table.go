package ui

import (
	"io"
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
}

// NewTable makes an empty table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row. Missing cells are empty; more cells than columns are a bug.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	for i, c := range cells {
		row[i] = OneLine(c)
	}
	t.rows = append(t.rows, row)
}

// WriteTo writes the table; two spaces part the columns, and no line ends in spaces.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	var lines [][]string
	head := make([]string, len(t.columns))
	named := false
	for i, c := range t.columns {
		head[i] = strings.ToUpper(c.Name)
		named = named || c.Name != ""
	}
	if named {
		lines = append(lines, head)
	}
	lines = append(lines, t.rows...)
	widths := make([]int, len(t.columns))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		var l strings.Builder
		for i, cell := range line {
			if i > 0 {
				l.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.columns[i].Align == Right {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
