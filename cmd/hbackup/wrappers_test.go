package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/config"
	"hbackup/internal/redact"
	"hbackup/internal/ui"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
)

// located reads a configuration with a location main of the given keys.
func located(t *testing.T, keys string, set ...config.Override) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hbackup.yaml")
	text := fmt.Sprintf(`version: 1
clusters:
  prod: {registry: {zookeeper: [zk1]}, root: "hdfs://nn1:8020/hbase", target: main}
locations:
  main: {%s}
`, keys)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{Path: file, Environ: []string{}, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func failing(t *testing.T, script string) *faulty.Store {
	t.Helper()
	s, err := faulty.New(mem.New("main"), script)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Only the kind that does not repeat by itself is repeated, and not when the
// configuration says no.
func TestWhichKindsAreRepeated(t *testing.T) {
	for keys, want := range map[string]int{
		`url: "file:///b", retry_for: 1h`: 2, `url: "file:///b"`: 2, `url: "file:///b", retry_for: 0s`: 1,
		`url: "s3://bucket"`: 1, `url: "gs://bucket"`: 1, `url: "hdfs://nn:8020/b"`: 1,
	} {
		loc := located(t, keys).Locations["main"]
		synctest.Test(t, func(t *testing.T) {
			inner := failing(t, "put#1:fail")
			_, err := storage.PutBytes(t.Context(), wrapped(inner, loc, nil, slog.New(slog.DiscardHandler)), "a", []byte("x"), true)
			if calls := inner.Calls()["put"]; calls != want || (err == nil) != (want > 1) {
				t.Errorf("%s: %d calls, %v", keys, calls, err)
			}
		})
	}
}

func TestALocationKeepsToItsLimits(t *testing.T) {
	loc := located(t, `url: "s3://bucket", limits: {upload: 10KiB/s, download: 20KiB/s, requests: 10, concurrency: 2}`).Locations["main"]
	synctest.Test(t, func(t *testing.T) {
		s, ctx := wrapped(mem.New("main"), loc, nil, nil), t.Context()
		began := time.Now()
		took := func(what string, want time.Duration) {
			t.Helper()
			if d := time.Since(began); d > want || d < want-200*time.Millisecond {
				t.Errorf("%s took %s; want %s", what, d, want)
			}
			began = time.Now()
		}
		if _, err := storage.PutBytes(ctx, s, "a", make([]byte, 100<<10), true); err != nil {
			t.Fatal(err)
		}
		took("writing", 10*time.Second)
		if _, _, err := storage.ReadAll(ctx, s, "a", 1<<20); err != nil {
			t.Fatal(err)
		}
		took("reading", 5*time.Second)
		for range 100 {
			s.Stat(ctx, "a")
		}
		took("looking", 10*time.Second)
		for range 2 {
			body, _, err := s.Get(ctx, "a", storage.Range{})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
		}
		late, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if _, err := s.Stat(late, "a"); !hbackup.IsKind(err, hbackup.KindTimeout) {
			t.Errorf("a third call while two are under way: %v", err)
		}
	})
}

func TestALocationWithoutLimitsIsNotWrapped(t *testing.T) {
	inner := mem.New("main")
	if s := wrapped(inner, located(t, `url: "s3://bucket"`).Locations["main"], nil, nil); s != storage.Store(inner) {
		t.Errorf("it is a %T", s)
	}
}

// The trace has every call that reached the store, repeated ones too, and no
// secret; it is its owner's alone.
func TestTheTraceOfALocation(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.jsonl")
	cfg := located(t, fmt.Sprintf("url: %q", "file://"+dir+"/backups"), config.Override{Key: "log.trace_store", Value: file, Flag: "--trace-store"})
	secrets := &redact.Secrets{}
	secrets.Add("hunter2-hunter2")
	open := func() *world {
		s := &session{program: &program{secrets: secrets, console: ui.NewConsole(io.Discard)}, cfg: cfg, log: slog.New(slog.DiscardHandler)}
		w, err := connect(s)
		if err != nil {
			t.Fatal(err)
		}
		return w.(*world)
	}
	for range 2 { // the second time it is added to
		w := open()
		s, err := w.location(t.Context(), cfg.Locations["main"])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := storage.PutBytes(t.Context(), s, "prod/hunter2-hunter2", []byte("content"), false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "prod/missing"); err == nil {
			t.Fatal("it is there")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if len(lines) != 4 || !strings.Contains(lines[2], `"call":"put"`) || !strings.Contains(lines[2], `"size":7`) ||
		!strings.Contains(lines[3], `"call":"stat","path":"file://`+dir+`/backups/prod/missing"`) || !strings.Contains(lines[3], `"error":"not_found"`) {
		t.Errorf("got\n%s", got)
	}
	if bytes.Contains(got, []byte("hunter2")) || bytes.Contains(got, []byte("level")) {
		t.Errorf("got\n%s", got)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// A trace that cannot be written is no reason to go on without one.
	cfg.Log.TraceStore = filepath.Join(dir, "nowhere", "trace.jsonl")
	w := open()
	if _, err := w.location(t.Context(), cfg.Locations["main"]); !hbackup.IsKind(err, hbackup.KindUsage) || hbackup.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}
