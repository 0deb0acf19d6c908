package ui

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that only the test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func TestLine(t *testing.T) {
	c := newClock()
	p := NewProgress("backup", c.now)
	line := func(want string) {
		t.Helper()
		if got := p.Snapshot().Line(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	line("backup: 0ms so far")
	p.Stage("ns:orders", "snapshot")
	c.pass(2 * time.Second)
	line("backup: snapshot ns:orders, 2.0s so far")
	p.Expect("ns:orders", 400, 4<<30)
	p.Stage("ns:orders", "copy")
	p.Done("ns:orders", 100, 1<<30, true)
	c.pass(time.Second)
	line("backup: copy ns:orders, 25.0 %, 1.0 GiB of 4.0 GiB, 100 of 400 files, 100 there before, 3.0s so far")
	p.Done("ns:orders", 20, 1<<30, false)
	c.pass(7 * time.Second)
	line("backup: copy ns:orders, 50.0 %, 2.0 GiB of 4.0 GiB, 120 of 400 files, 100 there before, 102.4 MiB/s, 20s left")
	p.Stage("ns:customers", "plan")
	p.Expect("ns:customers", 1, 1<<30) // the share would fall to 40 %
	line("backup: plan ns:customers, 0 of 2 tables done, 50.0 %, 2.0 GiB of 5.0 GiB, 120 of 401 files, 100 there before, 102.4 MiB/s, 30s left")
	p.Stage("ns:orders", "done")
	p.Done("ns:orders", 281, 3<<30, false)
	c.pass(time.Minute)
	line("backup: done ns:orders, 1 of 2 tables done, 99.9 %, 5.0 GiB of 5.0 GiB, 401 of 401 files, 100 there before, 51.2 MiB/s, 1m10s so far")
}

// The share never falls, never says all, and nothing is counted twice, whatever
// the order of the reports.
func TestShareNeverFallsOrLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		p := NewProgress("backup", c.now)
		last, files, bytes := 0, 0, int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n, b := rapid.IntRange(0, 9).Draw(t, "files"), rapid.Int64Range(0, 1<<40).Draw(t, "bytes")
			if rapid.Bool().Draw(t, "expect") {
				p.Expect("t", n, b)
			} else {
				p.Done("t", n, b, rapid.Bool().Draw(t, "reused"))
				files, bytes = files+n, bytes+b
			}
			c.pass(time.Duration(rapid.IntRange(0, 30000).Draw(t, "ms")) * time.Millisecond)
			s := p.Snapshot()
			if s.Permille < last || s.Permille > 999 {
				t.Fatalf("share went from %d to %d", last, s.Permille)
			}
			if s.FilesDone != files || s.BytesDone != bytes || s.Rate < 0 || s.Remaining < 0 {
				t.Fatalf("%+v", s)
			}
			last = s.Permille
		}
	})
}

func TestEventsAreLines(t *testing.T) {
	c := newClock()
	var b bytes.Buffer
	p := NewProgress("backup", c.now)
	pr := ShowAsEvents(NewLines(&b), p)
	p.Stage("ns:orders", "snapshot")
	p.Expect("ns:orders", 2, 2048)
	p.Done("ns:orders", 1, 1024, false)
	c.pass(time.Second)
	pr.show()
	pr.Stop()
	want := `{"type":"stage","at":"2026-11-30T23:00:00.000Z","table":"ns:orders","stage":"snapshot"}
{"type":"progress","at":"2026-11-30T23:00:01.000Z","table":"ns:orders","stage":"snapshot","files":2,"files_done":1,"bytes":2048,"bytes_done":1024,"share":0.5,"elapsed_seconds":1}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// A table that has ended says in its last event what was done for it.
func TestTheLastEventOfATable(t *testing.T) {
	c := newClock()
	var b bytes.Buffer
	p := NewProgress("backup", c.now)
	pr := ShowAsEvents(NewLines(&b), p)
	p.Expect("ns:orders", 3, 3072)
	p.Done("ns:orders", 1, 1024, false)
	p.Done("ns:orders", 2, 2048, true)
	p.Stage("ns:orders", StageDone)
	p.Stage("ns:items", StageFailed)
	pr.Stop()
	want := `{"type":"stage","at":"2026-11-30T23:00:00.000Z","table":"ns:orders","stage":"done","files":3,"files_done":3,"files_reused":2,"bytes":3072,"bytes_done":3072,"bytes_reused":2048}
{"type":"stage","at":"2026-11-30T23:00:00.000Z","table":"ns:items","stage":"failed"}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// On a terminal each table at work has a line, as far as there is room; those that are
// done are only counted and those that have failed named.
func TestLinesOfTables(t *testing.T) {
	c := newClock()
	p := NewProgress("backup", c.now)
	for i, name := range []string{"ns:a", "ns:failed", "ns:orders", "ns:c", "ns:d"} {
		p.Stage(name, "copy")
		p.Expect(name, 10*(i+1), 10<<20)
	}
	p.Done("ns:a", 10, 10<<20, false)
	p.Stage("ns:a", StageDone)
	p.Stage("ns:failed", StageFailed)
	p.Done("ns:orders", 15, 5<<20, true)
	c.pass(time.Second)
	whole := "backup: 2 of 5 tables done, 1 failed (ns:failed), 30.0 %, 15.0 MiB of 50.0 MiB, 25 of 150 files, 15 there before, 1.0s so far"
	orders := "  ns:orders  copy 50.0 %, 5.0 MiB of 10.0 MiB, 15 of 30 files, 15 there before"
	for most, want := range map[int][]string{
		1: {p.Snapshot().Line()},
		3: {whole, orders, "  and 2 more at work"},
		9: {whole, orders, "  ns:c       copy 0.0 %, 0 B of 10.0 MiB, 0 of 40 files", "  ns:d       copy 0.0 %, 0 B of 10.0 MiB, 0 of 50 files"},
	} {
		if got := p.Snapshot().Lines(most); !slices.Equal(got, want) {
			t.Errorf("%d lines:\n%s\nwant\n%s", most, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestWhereTheProgressIsShown(t *testing.T) {
	c := newClock()
	p := NewProgress("restore", c.now)
	p.Stage("", "copy")
	var b bytes.Buffer
	pr := ShowOn(NewConsole(&b), p)
	pr.show()
	pr.Stop()
	if got := b.String(); got != "restore: copy, 0ms so far\n" {
		t.Errorf("not a terminal: %q", got)
	}
	b.Reset()
	pr = ShowOn(&Console{out: &b, terminal: true, size: func() (int, int) { return 80, 24 }}, p)
	pr.show()
	pr.Stop()
	if got := b.String(); got != eraseLine+"restore: copy, 0ms so far"+eraseLine || strings.Contains(got, "\n") {
		t.Errorf("a terminal: %q", got)
	}
}
