package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"hbackup"
	"hbackup/backup"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/s3"
)

// BenchmarkTenGiBFile backs up one sparse file of 10 GiB beside small ones, and
// reports the highest memory that the process ever had. Run it alone.
func BenchmarkTenGiBFile(b *testing.B) {
	b.Run("dir", func(b *testing.B) {
		store, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		benchTenGiB(b, store)
	})
	b.Run("s3", func(b *testing.B) {
		g, err := servers.StartS3(context.Background(), servers.S3Options{Buckets: []string{"backups"}})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Stop()
		b.Setenv("TEST_ACCESS", g.AccessKey)
		b.Setenv("TEST_SECRET", g.SecretKey)
		store, err := s3.New(b.Context(), s3.Config{Bucket: "backups", Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
			Credentials: s3.Credentials{AccessKey: "env:TEST_ACCESS", SecretKey: "env:TEST_SECRET"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		benchTenGiB(b, store)
	})
}

func benchTenGiB(b *testing.B, store storage.Store) {
	defer debug.SetGCPercent(debug.SetGCPercent(33)) // as cmd/hbackup does
	const size = 10 << 30
	w := newWorld(b)
	w.addFile(b, orders, "2.6-none.hfile")
	files := w.tables[orders].files
	stretch(b, w.path(orders, files[len(files)-1]), size)
	b.SetBytes(size)
	for n := 0; b.Loop(); n++ {
		_, err := backup.Run(b.Context(), backup.Request{ID: hbackup.RequestID(fmt.Sprintf("r%d", n)), Cluster: hbackup.ClusterName(fmt.Sprintf("prod%d", n)), Tables: []hbackup.TableName{orders}},
			backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main"},
			backup.Options{Files: 8, Host: "bench", Writer: "bench", SkipChecksums: true})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(peak(b))/(1<<20), "peak-MiB")
}

// stretch makes an HFile that long by a hole before its trailer.
func stretch(b *testing.B, path string, size int64) {
	const trailer = 4096
	whole, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.WriteAt(whole[len(whole)-trailer:], size-trailer); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// peak gives the highest resident memory of this process so far, in bytes.
func peak(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	b.Skip("the kernel does not tell")
	return 0
}
