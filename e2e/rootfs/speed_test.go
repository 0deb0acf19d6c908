package rootfs

import (
	"io"
	"path"
	"syscall"
	"testing"
)

// BenchmarkRead reads a file of 256 MB; MB/CPU-s is the cost in this process.
func BenchmarkRead(b *testing.B) {
	fs := connect(b, nil)
	p := path.Join(directory(b, fs), "f")
	const size = 256 << 20
	w, err := fs.Create(b.Context(), p)
	must(b, err)
	block := content(1 << 20)
	for range size >> 20 {
		_, err = w.Write(block)
		must(b, err)
	}
	must(b, w.Close())
	for name, buf := range map[string][]byte{"copy": nil, "32KiB": make([]byte, 32<<10), "256KiB": make([]byte, 256<<10)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			start := cpu()
			for b.Loop() {
				r, _, err := fs.Open(b.Context(), p, 0)
				must(b, err)
				var from io.Reader = r
				if buf != nil {
					from = struct{ io.Reader }{r}
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, from, buf)
				must(b, err)
				must(b, r.Close())
				if n != size {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpu()-start), "MB/CPU-s")
		})
	}
}

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
