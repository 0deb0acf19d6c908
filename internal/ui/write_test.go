package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	table := NewTable(Column{Name: "backup"}, Column{Name: "size", Align: Right}, Column{Name: "tables"})
	table.Row("a", "1.0 KiB", "ns:orders\x1b[2J, é")
	table.Row("longer", "12 B")
	var b strings.Builder
	if _, err := table.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"BACKUP     SIZE  TABLES\n" +
		"a       1.0 KiB  ns:orders [2J, é\n" +
		"longer     12 B\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Every column starts at the same place in every line.
func TestTableIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable(Column{Name: "a"}, Column{Name: "b"})
		rows := rapid.SliceOfN(rapid.StringMatching(`[a-zé]{1,9}`), 1, 9).Draw(t, "cells")
		for _, r := range rows {
			table.Row(r, "|")
		}
		var b strings.Builder
		table.WriteTo(&b)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		at := utf8.RuneCountInString(lines[0][:strings.Index(lines[0], "B")])
		for _, l := range lines[1:] {
			if got := utf8.RuneCountInString(l[:strings.Index(l, "|")]); got != at {
				t.Fatalf("column at %d, want %d:\n%s", got, at, b.String())
			}
		}
	})
}

func TestJSONForms(t *testing.T) {
	value := struct {
		A string `json:"a"`
		N int64  `json:"n"`
	}{"<x>&", 1 << 60}
	var b bytes.Buffer
	if err := WriteDocument(&b, "hbackup.test/1", value); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"schema\": \"hbackup.test/1\",\n  \"a\": \"<x>&\",\n  \"n\": 1152921504606846976\n}\n"; b.String() != want {
		t.Errorf("document %s", b.String())
	}
	b.Reset()
	for _, err := range []error{WriteLine(&b, "item", "", value), WriteLine(&b, "summary", "hbackup.test/1", struct{}{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := `{"type":"item","a":"<x>&","n":1152921504606846976}` + "\n" + `{"type":"summary","schema":"hbackup.test/1"}` + "\n"; b.String() != want {
		t.Errorf("lines %s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("pipe is broken")
	}
	return len(b), nil
}

func TestLinesKeepTheFirstError(t *testing.T) {
	l := NewLines(&failing{after: 1})
	l.Write([]byte("12345"))
	l.Write([]byte("x"))
	if _, err := l.Write([]byte("y")); err == nil || err.Error() != "pipe is broken" {
		t.Errorf("%v", err)
	}
	if l.Written() != 5 || l.Err() == nil {
		t.Errorf("written %d, %v", l.Written(), l.Err())
	}
}

func TestConsoleKeepsTheStatusLineLast(t *testing.T) {
	var b bytes.Buffer
	c := &Console{out: &b, terminal: true, size: func() (int, int) { return 12, 24 }}
	c.Write([]byte("one\n"))
	c.Status("50 %")
	c.Write([]byte("two\n"))
	c.Status("a line that is too long", "second")
	c.Status("one again", "2", "3")
	c.Write([]byte("three\n"))
	c.Status()
	c.Write([]byte("four\n"))
	two, three := eraseLine+lineUp+eraseLine, eraseLine+lineUp+eraseLine+lineUp+eraseLine
	want := "one\n" + eraseLine + "50 %" + eraseLine + "two\n50 %" + eraseLine + "a line tha…\nsecond" + two + "one again\n2\n3" +
		three + "three\none again\n2\n3" + three + "four\n"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}
