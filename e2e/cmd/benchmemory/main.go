// Command benchmemory shows the most memory that a process ever had which lists,
// uploads or reads with hbackup's S3 store, at one size and at ten times that. The
// store it asks is a server in the parent process that keeps nothing. Each line is a
// process of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"

	"hbackup/storage"
	"hbackup/storage/s3"
)

// A job is what a process does, so many of something.
type job struct {
	name  string
	unit  string
	few   int64
	do    func(context.Context, *s3.Store, int64) error
	parts int64 // size of a part in bytes; 0: the store's default
}

var jobs = []job{
	{name: "list", unit: "keys", few: 100_000, do: list},
	{name: "parts", unit: "parts of 5 MiB", few: 1000, do: parts, parts: s3.MinPartSize},
	{name: "put", unit: "GiB put", few: 1, do: func(ctx context.Context, s *s3.Store, n int64) error { return put(ctx, s, n<<30) }},
	{name: "get", unit: "GiB read", few: 1, do: func(ctx context.Context, s *s3.Store, n int64) error { return get(ctx, s, n<<30) }},
}

func main() {
	as := flag.String("as", "", "do this job, against the server at -at")
	at := flag.String("at", "", "URL of the server")
	count := flag.Int64("count", 0, "how many")
	flag.Parse()
	var err error
	if *as == "" {
		err = compare()
	} else {
		err = child(*as, *at, *count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmemory:", err)
		os.Exit(1)
	}
}

func compare() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		for _, n := range []int64{j.few, 10 * j.few} {
			server := &http.Server{Handler: sink{keys: n, size: n << 30}}
			at, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			go server.Serve(at)
			cmd := exec.Command(self, "-as", j.name, "-at", "http://"+at.Addr().String(), "-count", strconv.FormatInt(n, 10))
			cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench", "AWS_EC2_METADATA_DISABLED=true")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := errors.Join(cmd.Run(), server.Close()); err != nil {
				return fmt.Errorf("%s: %w", j.name, err)
			}
		}
	}
	return nil
}

func child(name, at string, n int64) error {
	debug.SetGCPercent(33) // as cmd/hbackup does
	ctx := context.Background()
	for _, j := range jobs {
		if j.name != name {
			continue
		}
		s, err := s3.New(ctx, s3.Config{Bucket: "bench", Endpoint: at, PathStyle: true, PartSize: j.parts, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if err := j.do(ctx, s, n); err != nil {
			return err
		}
		peak, err := peak()
		fmt.Printf("%9d %-15s %4d MiB\n", n, j.unit, peak>>20)
		return err
	}
	return fmt.Errorf("there is no job %q", name)
}

func list(ctx context.Context, s *s3.Store, n int64) error {
	for _, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		n--
	}
	if n != 0 {
		return fmt.Errorf("%d keys are missing", n)
	}
	return nil
}

func parts(ctx context.Context, s *s3.Store, n int64) error { return put(ctx, s, n*s3.MinPartSize) }

func put(ctx context.Context, s *s3.Store, size int64) error {
	_, err := s.Put(ctx, "object", io.LimitReader(zeros{}, size), storage.PutOptions{Size: size})
	return err
}

func get(ctx context.Context, s *s3.Store, size int64) error {
	r, _, err := s.Get(ctx, "object", storage.Range{})
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 1<<20))
	if n != size && err == nil {
		err = fmt.Errorf("%d bytes were read", n)
	}
	return errors.Join(err, r.Close())
}

// zeros is a sparse file without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// peak gives the highest resident memory of this process so far, in bytes.
func peak() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the kernel does not tell")
}
