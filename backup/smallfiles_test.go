package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/e2e/servers"
	"hbackup/storage/s3"
)

// far lets every request wait before it leaves. It counts them, and notes when the
// first store file left and when the last one was answered.
type far struct {
	http.RoundTripper
	latency time.Duration
	seen    *seen
}

type seen struct {
	requests atomic.Int64
	mu       sync.Mutex
	first    time.Time
	last     time.Time
}

func (f far) RoundTrip(r *http.Request) (*http.Response, error) {
	f.seen.requests.Add(1)
	if strings.Contains(r.URL.Path, "/archive/data/") {
		f.seen.note(&f.seen.first, true)
		defer f.seen.note(&f.seen.last, false)
	}
	timer := time.NewTimer(f.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return f.RoundTripper.RoundTrip(r)
}

func (s *seen) note(at *time.Time, once bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !once || at.IsZero() {
		*at = time.Now()
	}
}

// BenchmarkSmallFilesFarAway backs up 4,000 small HFiles to a store that is 20 ms
// away and reports the share of what so many connections can do that wait out the
// latency once a file: from the first file to the last, and of the whole run with
// what comes before and after, which is the same for any number of files.
func BenchmarkSmallFilesFarAway(b *testing.B) {
	const files, latency = 4000, 20 * time.Millisecond
	g, err := servers.StartS3(context.Background(), servers.S3Options{Buckets: []string{"backups"}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Stop()
	b.Setenv("TEST_ACCESS", g.AccessKey)
	b.Setenv("TEST_SECRET", g.SecretKey)
	for _, connections := range []int{8, 16} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			w := newWorld(b)
			for range files - len(w.tables[orders].files) {
				w.addFile(b, orders, "2.6-none.hfile")
			}
			runs, requests, copying := 0, int64(0), time.Duration(0)
			for b.Loop() {
				runs++
				var seen seen
				store, err := s3.New(b.Context(), s3.Config{Bucket: "backups", Prefix: fmt.Sprintf("c%d/%d", connections, runs), Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
					Credentials: s3.Credentials{AccessKey: "env:TEST_ACCESS", SecretKey: "env:TEST_SECRET"}, Logger: slog.New(slog.DiscardHandler),
					Wrap: func(rt http.RoundTripper) http.RoundTripper { return far{rt, latency, &seen} }})
				if err != nil {
					b.Fatal(err)
				}
				_, err = backup.Run(b.Context(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
					backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main"},
					backup.Options{Files: connections, Host: "bench", Writer: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				store.Close()
				requests += seen.requests.Load()
				copying += seen.last.Sub(seen.first)
			}
			possible := time.Duration(files*runs/connections) * latency
			b.ReportMetric(100*possible.Seconds()/copying.Seconds(), "%-copying")
			b.ReportMetric(100*possible.Seconds()/b.Elapsed().Seconds(), "%-of-the-run")
			b.ReportMetric(float64(requests)/float64(runs), "requests")
		})
	}
}
