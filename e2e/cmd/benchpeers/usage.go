package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what one run of a process took.
type usage struct {
	wall, cpu time.Duration
	peak      int64   // bytes of resident memory
	foreign   float64 // processor cores that were busy with anything but this process
	requests  int     // to the gateway
	stored    stored
}

// stored is what lies in the bucket after a run.
type stored struct {
	files int
	bytes int64
}

func (u usage) String() string {
	return fmt.Sprintf("%.2f s, %.2f CPU-s, %.0f MiB, %d requests, %d objects of %d MB, %.1f cores busy besides",
		u.wall.Seconds(), u.cpu.Seconds(), float64(u.peak)/(1<<20), u.requests, u.stored.files, u.stored.bytes/1e6, u.foreign)
}

type clock struct {
	at   time.Time
	busy time.Duration
}

func start() clock { return clock{time.Now(), busy()} }

func (c clock) stop(state *os.ProcessState) usage {
	u := usage{wall: time.Since(c.at), cpu: state.UserTime() + state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.peak = r.Maxrss * 1024 // Linux counts it in KiB
	}
	u.foreign = (busy() - c.busy - u.cpu).Seconds() / u.wall.Seconds()
	return u
}

// busy is the time that all processors together have worked since the machine
// started; 0 where there is no /proc.
func busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	const idle, ioWait = 4, 5
	var ticks int64
	for i, f := range strings.Fields(line) {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil && i != idle && i != ioWait {
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// sizeOf counts the files below a directory.
func sizeOf(dir string) (s stored, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			s.files, s.bytes = s.files+1, s.bytes+info.Size()
		}
		return err
	})
	if s.files == 0 && err == nil {
		err = errors.New(dir + ": nothing was written")
	}
	return s, err
}

// show prints medians and the ratios of them as a Markdown table.
func show(title string, ours, theirs []usage) {
	a, b := median(ours), median(theirs)
	fmt.Printf("\n| %s, %d MB | wall s | CPU s | peak MiB | MB per CPU-s | S3 requests | cores busy besides |\n|---|---|---|---|---|---|---|\n", title, a.stored.bytes/1e6)
	row := func(name string, u usage) {
		fmt.Printf("| %s | %.2f | %.2f | %.0f | %.0f | %d | %.1f |\n", name, u.wall.Seconds(), u.cpu.Seconds(), float64(u.peak)/(1<<20),
			float64(u.stored.bytes)/1e6/u.cpu.Seconds(), u.requests, u.foreign)
	}
	row("hbackup backup", a)
	row("ExportSnapshot to s3a", b)
	fmt.Printf("| ratio | %.1f | %.1f | %.1f | | %.1f | |\n\n", b.wall.Seconds()/a.wall.Seconds(), b.cpu.Seconds()/a.cpu.Seconds(),
		float64(b.peak)/float64(a.peak), float64(b.requests)/float64(a.requests))
}

// median takes the middle of each figure by itself.
func median(all []usage) usage {
	return usage{
		wall: middle(all, func(u usage) time.Duration { return u.wall }), cpu: middle(all, func(u usage) time.Duration { return u.cpu }),
		peak: middle(all, func(u usage) int64 { return u.peak }), requests: middle(all, func(u usage) int { return u.requests }),
		foreign: middle(all, func(u usage) float64 { return u.foreign }), stored: all[0].stored,
	}
}

func middle[T cmp.Ordered](all []usage, of func(usage) T) T {
	var v []T
	for _, u := range all {
		v = append(v, of(u))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
