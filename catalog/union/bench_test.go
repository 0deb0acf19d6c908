package union

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"syscall"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	storefile "hbackup/storage/file"
)

// library writes images as a table has them over time: of the files of the last
// image, renewed are replaced. It gives the location.
func library(b *testing.B, images, files, renewed int) storage.Store {
	b.Helper()
	dir := b.TempDir()
	folder := filepath.Join(dir, filepath.Dir(string(catalog.ImageKey(orders, "x"))))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	fresh := func(n int) catalog.File {
		return catalog.File{Table: orders, Region: hbackup.EncodedRegion(fmt.Sprintf("%032x", n/3*7919)), Family: "f",
			Name: fmt.Sprintf("%016x%016x", rnd.Uint64(), rnd.Uint64()), Size: rnd.Int64N(1 << 34), Digest: storage.Digest(rnd.Uint64()), Cells: rnd.Int64N(1 << 30)}
	}
	all := make([]catalog.File, files)
	for i := range all {
		all[i] = fresh(i)
	}
	for n := range images {
		for range renewed {
			i := rnd.IntN(files)
			all[i] = fresh(i)
		}
		id := hbackup.NewBackupID(start.Add(time.Duration(n) * time.Hour))
		im := &catalog.Image{Header: catalog.Header{ID: id.Image(0), Backup: id, Cluster: "prod", Table: orders}, Files: all}
		for _, f := range all {
			im.Totals.Files++
			im.Totals.Bytes += f.Size
		}
		encoded, err := im.Encode()
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(catalog.ImageKey(orders, im.ID))), encoded, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	place, err := storage.ParseLocation("file://" + dir)
	if err != nil {
		b.Fatal(err)
	}
	s, err := storefile.Open(place)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// costs reports processor time for each entry and the most memory in use.
func costs(b *testing.B, entries int, do func()) {
	b.Helper()
	var peak uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				metrics.Read(sample)
				peak = max(peak, sample[0].Value.Uint64())
			}
		}
	}()
	runtime.GC()
	before := processorTime(b)
	for b.Loop() {
		do()
	}
	used := processorTime(b) - before
	close(stop)
	<-done
	b.ReportMetric(float64(entries)*float64(b.N)/used.Seconds(), "entries/cpu-s")
	b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Ten million references: 10,000 images of a table of 1,000 files, of which each
// renews 10; and 20 images of 500,000 files that have little in common.
func BenchmarkRebuild(b *testing.B) {
	for _, c := range []struct{ images, files, renewed int }{{10_000, 1_000, 10}, {20, 500_000, 400_000}} {
		b.Run(fmt.Sprintf("%dx%d", c.images, c.files), func(b *testing.B) {
			s := library(b, c.images, c.files, c.renewed)
			dir := b.TempDir()
			var size int64
			costs(b, c.images*c.files, func() {
				if err := os.RemoveAll(dir); err != nil {
					b.Fatal(err)
				}
				u := of(b, Open(dir, quiet), s, orders)
				if len(u.Images()) != c.images {
					b.Fatal(len(u.Images()))
				}
				st, err := u.file.Stat()
				if err != nil {
					b.Fatal(err)
				}
				size = st.Size() / int64(u.Totals().Files)
			})
			b.ReportMetric(float64(size), "B/file")
		})
	}
}

// One more image of 1,000 files, for a union of 10,000 images.
func BenchmarkOneMore(b *testing.B) {
	s := library(b, 10_000, 1_000, 10)
	dir := b.TempDir()
	refs, err := catalog.ImageRefs(ctx, s, orders)
	if err != nil {
		b.Fatal(err)
	}
	m := &maker{ctx: ctx, store: s, table: orders, images: imagesOf(refs[:len(refs)-1]), dir: dir, bounds: usual}
	old, err := m.update(refs[:len(refs)-1], nil, filepath.Join(dir, "old"))
	if err != nil {
		b.Fatal(err)
	}
	m.images = imagesOf(refs)
	costs(b, 1_000, func() {
		u, err := m.update(refs, old, filepath.Join(dir, "new"))
		if err != nil {
			b.Fatal(err)
		}
		u.Close()
	})
}

// The question of a plan: 1,000 files of which most are named.
func BenchmarkNamed(b *testing.B) {
	s := library(b, 200, 50_000, 500)
	u := of(b, Open(b.TempDir(), quiet), s, orders)
	var asked []catalog.File
	n := 0
	for e, err := range u.Entries() {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%150 == 0 {
			asked = append(asked, e.File)
		}
	}
	costs(b, len(asked), func() {
		found := 0
		for _, err := range u.Named(slices.Values(asked)) {
			if err != nil {
				b.Fatal(err)
			}
			found++
		}
		if found != len(asked) {
			b.Fatal(found, len(asked))
		}
	})
}
