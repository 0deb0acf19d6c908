package hadoop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

var errDown = errors.New("connection refused")

// tries counts how often a call is tried, and how long it is waited for.
func tries(ctx context.Context, w *Waiter, enough int) (n int) {
	for wait := w.Begin(); n < enough && wait.Again(ctx, errDown); {
		n++
	}
	return n
}

// Who was never heard of is waited for a little, who was heard of for long.
func TestPatience(t *testing.T) {
	w := Patience{RetryFor: time.Hour, StartFor: 150 * time.Millisecond}.NewWaiter("hdfs://ns")
	if n := tries(t.Context(), w, 100); n == 0 || n == 100 {
		t.Errorf("%d tries before anybody was heard of", n)
	}
	if n := tries(t.Context(), w, 1); n != 0 {
		t.Errorf("the next call was tried again %d times", n)
	}
	w.Heard()
	if n := tries(t.Context(), w, 4); n != 4 {
		t.Errorf("%d tries after that", n)
	}
	for _, p := range []Patience{{RetryFor: -1}, {RetryFor: -1, StartFor: time.Hour}} {
		w = p.NewWaiter("hdfs://ns")
		if n := tries(t.Context(), w, 1); n != 0 {
			t.Errorf("%+v: %d tries", p, n)
		}
	}
	if p := (Patience{}).withDefaults(); p.StartFor != 5*time.Second || p.RetryFor != 30*time.Second {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = Patience{}.NewWaiter("hdfs://ns")
	if n := tries(ctx, w, 1); n != 0 {
		t.Errorf("%d tries without a context", n)
	}
}

// A wait is told of once, however many calls wait, until a call was served.
func TestWaitIsTold(t *testing.T) {
	var log bytes.Buffer
	w := Patience{RetryFor: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))}.NewWaiter("hdfs://ns")
	w.Heard()
	wait := func(since time.Duration) {
		t.Helper()
		a := w.Begin()
		a.began = a.began.Add(-since)
		if !a.Again(t.Context(), errDown) {
			t.Fatal("it is not waited any more")
		}
	}
	for _, c := range []struct {
		since  time.Duration
		served bool
		told   int
	}{{0, false, 0}, {tellAfter, false, 1}, {tellAfter, false, 1}, {2 * tellAfter, true, 2}, {0, true, 2}} {
		if c.served {
			w.Served()
		}
		wait(c.since)
		text := log.String()
		if n := strings.Count(text, "\n"); n != c.told {
			t.Errorf("told %d times, want %d:\n%s", n, c.told, text)
		}
		if c.told == 1 && !(strings.Contains(text, "hdfs://ns") && strings.Contains(text, "refused") && strings.Contains(text, "59m59s")) {
			t.Error(text)
		}
	}
}
