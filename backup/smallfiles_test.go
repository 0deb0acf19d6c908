package backup_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/s3"
)

// far lets every request wait before it leaves.
type far struct {
	http.RoundTripper
	latency time.Duration
}

func (f far) RoundTrip(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(f.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return f.RoundTripper.RoundTrip(r)
}

// timed notes when the put of the first store file began, and when the last ended.
type timed struct {
	storage.Store
	mu          sync.Mutex
	first, last time.Time
}

func (s *timed) Unwrap() storage.Store { return s.Store }

func (s *timed) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	return storage.PermanenceOf(ctx, s.Store)
}

func (s *timed) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (storage.Object, error) {
	began := time.Now()
	obj, err := s.Store.Put(ctx, key, body, o)
	if strings.Contains(string(key), "/archive/data/") {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.first.IsZero() || began.Before(s.first) {
			s.first = began
		}
		s.last = time.Now()
	}
	return obj, err
}

// BenchmarkSmallFilesFarAway backs up 4,000 small HFiles to a store that is 20 ms
// away: one in memory, which shows what the run itself costs, and an S3 gateway on
// this machine, which takes its part of the processors. It reports the share of what
// so many connections can do that wait out the latency once a file: from the first
// file to the last, and of the whole run with what comes before and after, which is
// the same for any number of files.
func BenchmarkSmallFilesFarAway(b *testing.B) {
	const latency = 20 * time.Millisecond
	g, err := servers.StartS3(context.Background(), servers.S3Options{Buckets: []string{"backups"}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Stop()
	b.Setenv("TEST_ACCESS", g.AccessKey)
	b.Setenv("TEST_SECRET", g.SecretKey)
	for _, connections := range []int{8, 16} {
		b.Run(fmt.Sprintf("memory/connections=%d", connections), func(b *testing.B) {
			benchSmallFiles(b, connections, latency, func(int) (storage.Store, error) {
				return faulty.New(mem.New("backups"), fmt.Sprintf("any#*:delay=%s", latency))
			})
		})
		b.Run(fmt.Sprintf("s3/connections=%d", connections), func(b *testing.B) {
			benchSmallFiles(b, connections, latency, func(n int) (storage.Store, error) {
				return s3.New(b.Context(), s3.Config{Bucket: "backups", Prefix: fmt.Sprintf("c%d/%d", connections, n), Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
					Credentials: s3.Credentials{AccessKey: "env:TEST_ACCESS", SecretKey: "env:TEST_SECRET"}, Logger: slog.New(slog.DiscardHandler),
					Wrap: func(rt http.RoundTripper) http.RoundTripper { return far{rt, latency} }})
			})
		})
	}
}

func benchSmallFiles(b *testing.B, connections int, latency time.Duration, open func(n int) (storage.Store, error)) {
	const files = 4000
	w := newWorld(b)
	for range files - len(w.tables[orders].files) {
		w.addFile(b, orders, "2.6-none.hfile")
	}
	runs, copying := 0, time.Duration(0)
	for b.Loop() {
		runs++
		inner, err := open(runs)
		if err != nil {
			b.Fatal(err)
		}
		store := &timed{Store: inner}
		_, err = backup.Run(b.Context(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
			backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main"},
			backup.Options{Files: connections, Host: "bench", Writer: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
		copying += store.last.Sub(store.first)
	}
	possible := time.Duration(files*runs/connections) * latency
	b.ReportMetric(100*possible.Seconds()/copying.Seconds(), "%-copying")
	b.ReportMetric(100*possible.Seconds()/b.Elapsed().Seconds(), "%-of-the-run")
}
