package gcs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hbackup/storage"
	"hbackup/storage/gcs/gcstest"
)

const benchSize = 256 << 20

// serveEnv makes this program a server and nothing else. Its value is how long
// each request takes to arrive.
const serveEnv = "GCSTEST_SERVE"

// serve runs the server until standard input ends.
func serve(delay string) int {
	d, err := time.ParseDuration(delay)
	if err != nil {
		panic(err)
	}
	backend, err := gcstest.New(gcstest.Options{Buckets: []string{bucket}})
	if err != nil {
		panic(err)
	}
	defer backend.Close()
	front := quiet(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		backend.ServeHTTP(w, r)
	}))
	front.Start()
	defer front.Close()
	fmt.Println(front.URL)
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// apart starts the server as a process of its own, whose processor time is not
// counted, and gives its address.
func apart(b *testing.B, delay time.Duration) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+delay.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(at)
}

// cpu gives the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perCPU runs the benchmark and reports megabytes per second of processor time.
func perCPU(b *testing.B, run func(n int)) {
	b.SetBytes(benchSize)
	run(0) // connections and buffers
	n, before := 0, cpu()
	for b.Loop() {
		n++
		run(n % 2)
	}
	b.ReportMetric(benchSize*float64(n)/1e6/(cpu()-before).Seconds(), "MB/CPU-s")
}

func benchPut(b *testing.B, delay time.Duration, parallel int) {
	path := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(path, bytesFor(benchSize), 0o600); err != nil {
		b.Fatal(err)
	}
	c := configFor(b)
	c.Endpoint, c.ChunkSize, c.Parallel = apart(b, delay), DefaultChunkSize, parallel
	s := open(b, c)
	perCPU(b, func(n int) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if _, err := s.Put(b.Context(), storage.Key(fmt.Sprintf("k%d", n)), f, storage.PutOptions{Size: benchSize}); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkPutLarge sends a file, as a backup does: in parts side by side, and in
// chunks one after the other. BenchmarkBarePut is the yardstick: net/http sending
// the same bytes from memory, with no checksum. The slow ones are 20 ms away.
func BenchmarkPutLarge(b *testing.B)           { benchPut(b, 0, DefaultParallel) }
func BenchmarkPutLargeChunks(b *testing.B)     { benchPut(b, 0, 1) }
func BenchmarkPutLargeSlow(b *testing.B)       { benchPut(b, 20*time.Millisecond, DefaultParallel) }
func BenchmarkPutLargeChunksSlow(b *testing.B) { benchPut(b, 20*time.Millisecond, 1) }

func BenchmarkBarePut(b *testing.B) {
	at := apart(b, 0)
	data := bytesFor(benchSize)
	perCPU(b, func(n int) { barePut(b, at, fmt.Sprintf("k%d", n), data) })
}

func barePut(b *testing.B, at, name string, data []byte) {
	b.Helper()
	resp, err := http.Post(at+"/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name="+url.QueryEscape(name), "application/octet-stream", bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
		b.Fatalf("%s %s", resp.Status, text)
	}
}

// BenchmarkGetLarge reads an object, checked; BenchmarkBareGet does it unchecked.
func BenchmarkGetLarge(b *testing.B) {
	c := configFor(b)
	c.Endpoint = apart(b, 0)
	s := open(b, c)
	barePut(b, c.Endpoint, s.full("k"), bytesFor(benchSize))
	buf := make([]byte, 1<<20)
	perCPU(b, func(int) {
		r, _, err := s.Get(b.Context(), "k", storage.Range{})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buf); n != benchSize || err != nil {
			b.Fatal(n, err)
		}
	})
}

func BenchmarkBareGet(b *testing.B) {
	at := apart(b, 0)
	barePut(b, at, "k", bytesFor(benchSize))
	buf := make([]byte, 1<<20)
	perCPU(b, func(int) {
		resp, err := http.Get(at + "/storage/v1/b/" + bucket + "/o/k?alt=media")
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf); n != benchSize || err != nil {
			b.Fatal(n, err)
		}
	})
}
