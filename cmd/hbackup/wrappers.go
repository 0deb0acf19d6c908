package main

import (
	"log/slog"
	"os"

	"hbackup"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/limit"
	"hbackup/storage/retry"
	"hbackup/storage/trace"
)

// wrapped puts around a store what the location's configuration asks for. From the
// inside: the trace, which so has every call that reaches the store and none that
// waits; the rates; the number of calls at once; and repeating, which holds no slot
// while it waits. A trace of nil is none.
func wrapped(s storage.Store, loc *config.Location, calls, log *slog.Logger) storage.Store {
	if calls != nil {
		s = trace.New(s, calls)
	}
	l := loc.Limits
	if l.Upload > 0 || l.Download > 0 || l.Requests > 0 {
		s = limit.New(s, limit.Rates{Upload: int64(l.Upload), Download: int64(l.Download), Calls: float64(l.Requests)})
	}
	if l.Concurrency > 0 {
		s = concurrency.New(s, l.Concurrency)
	}
	// The stores of S3, Google Cloud Storage and HDFS repeat single requests, with
	// knowledge that is not to be had here: whether the last byte has left, and by a
	// mark in the object whose it is. Repeating their calls as well would multiply
	// both. A file system says once that it failed.
	if loc.URL.Scheme == storage.SchemeFile && loc.RetryFor > 0 {
		s = retry.New(s, retry.Options{For: loc.RetryFor, Log: log})
	}
	return s
}

// calls gives the log of the stores' calls, or nil; the caller holds mu. It is a file of its own, for
// which nobody but its owner has rights, and knows no secret.
func (w *world) calls() (*slog.Logger, error) {
	if w.cfg.Log.TraceStore == "" || w.trace != nil {
		return w.trace, nil
	}
	f, err := os.OpenFile(w.cfg.Log.TraceStore, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, hbackup.E("open the trace", w.cfg.Log.TraceStore, hbackup.KindUsage, err).
			WithHint("name a file that can be written, with --trace-store or as log.trace_store")
	}
	w.opened = append(w.opened, f.Close)
	h := slog.NewJSONHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: traceAttr})
	w.trace = slog.New(w.secrets.Handler(h))
	return w.trace, nil
}

// traceAttr leaves out the level, which is always the same.
func traceAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	if len(groups) == 0 && a.Key == slog.MessageKey {
		a.Key = "call"
	}
	return utcTime(groups, a)
}
