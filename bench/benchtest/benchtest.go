// Package benchtest is the suite that every kind of target of the benchmark
// passes: each protocol's outcome is right, its requests are exactly those that a
// formula gives, and nothing is left of it.
package benchtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"hbackup"
	"hbackup/bench"
	"hbackup/storage"
)

// Counts are the requests of a phase, by kind.
type Counts map[string]int64

// Formula gives what a protocol asks for, in the commits of all tasks and in that
// of the job.
type Formula func(files, tasks int64) (taskCommit, jobCommit Counts)

// Suite is what is known of a kind of target.
type Suite struct {
	// Formulas are those of the protocols that the target has; of the others it must
	// say that it has them not.
	Formulas map[bench.Protocol]Formula
	// Repeated is a request that a client repeats until the server is ready, so that
	// there are no fewer than the formula says, and maybe more.
	Repeated string
	// Open gives a target in a folder, and Outside the store in which the folder is.
	Open    func(t *testing.T, folder string) bench.Target
	Outside func(*testing.T) storage.Store
}

// Run tests the target.
func Run(t *testing.T, suite Suite) {
	for _, size := range []struct{ files, tasks int }{{2, 1}, {5, 1}, {7, 2}} {
		if testing.Short() && size.tasks > 1 {
			continue
		}
		for _, p := range bench.Protocols {
			t.Run(fmt.Sprintf("%s of %d in %d", p, size.files, size.tasks), func(t *testing.T) {
				target := suite.Open(t, bench.NewFolder())
				o := bench.Options{Protocols: []bench.Protocol{p}, Files: size.files, Size: 1000, Tasks: size.tasks, Parallel: 1, Pool: 1}
				results, err := bench.Run(t.Context(), target, o, nil)
				if err != nil || len(results) != 1 {
					t.Fatalf("%v, %v", results, err)
				}
				f, r := suite.Formulas[p], results[0]
				if (f == nil) != (r.Unsupported != "") {
					t.Fatalf("unsupported: %q", r.Unsupported)
				}
				if f == nil {
					return
				}
				tasks, job := f(int64(size.files), int64(size.tasks))
				suite.compare(t, "task commit", r.TaskCommit.Traffic, tasks)
				suite.compare(t, "job commit", r.JobCommit.Traffic, job)
			})
		}
	}
	t.Run("all at once, with neighbours", func(t *testing.T) { neighbours(t, suite.Outside(t), suite.Open) })
	if testing.Short() {
		return
	}
	t.Run("interrupted", func(t *testing.T) { interrupted(t, suite.Outside(t), suite.Open) })
}

func (suite Suite) compare(t *testing.T, what string, got bench.Traffic, want Counts) {
	t.Helper()
	have, wanted := Counts(maps.Clone(got.Requests)), Counts{}
	for kind, n := range want {
		if n != 0 {
			wanted[kind] = n
		}
		if kind == suite.Repeated && n != 0 {
			have[kind] = min(have[kind], n)
		}
	}
	if !maps.Equal(have, wanted) {
		t.Errorf("%s: %v, the formula says %v", what, have, wanted)
	}
}

// keys gives everything in the store.
func keys(t *testing.T, s storage.Store) map[storage.Key]bool {
	t.Helper()
	all := map[storage.Key]bool{}
	for o, err := range s.List(context.WithoutCancel(t.Context()), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = true
	}
	return all
}

// unchanged looks that the store has what it had.
func unchanged(t *testing.T, s storage.Store, before map[storage.Key]bool) {
	t.Helper()
	after := keys(t, s)
	for key := range before {
		if !after[key] {
			t.Errorf("%s is gone", key)
		}
	}
	for key := range after {
		if !before[key] {
			t.Errorf("%s is left over", key)
		}
	}
}

// populate puts objects whose names begin like the folder.
func populate(t *testing.T, s storage.Store, folder string) {
	t.Helper()
	for _, name := range []string{folder + "0/x", folder + ".x", "other/x"} {
		if _, err := storage.PutBytes(t.Context(), s, storage.Key(name), []byte("mine"), false); err != nil {
			t.Fatal(err)
		}
	}
}

// neighbours runs everything, many at a time, and looks that nothing else was touched.
func neighbours(t *testing.T, s storage.Store, open func(*testing.T, string) bench.Target) {
	folder := bench.NewFolder()
	populate(t, s, folder)
	before := keys(t, s)
	o := bench.Options{Protocols: bench.Protocols, Files: 40, Size: 5000, Tasks: 6, Parallel: 4}
	results, err := bench.Run(t.Context(), open(t, folder), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		c := r.Commit().Traffic
		if r.Protocol == bench.Hbackup && (c.Total() == 0 || c.Copied != 0) {
			t.Errorf("ours: %+v", c)
		}
	}
	unchanged(t, s, before)
}

// interrupted ends the context at each of the steps, and looks that the folder is
// gone all the same.
func interrupted(t *testing.T, s storage.Store, open func(*testing.T, string) bench.Target) {
	for _, p := range bench.Protocols {
		for _, at := range []string{"write", "commit tasks", "commit job", "verify"} {
			folder := bench.NewFolder()
			populate(t, s, folder)
			before := keys(t, s)
			ctx, cancel := context.WithCancelCause(t.Context())
			target := open(t, folder)
			if p == bench.Magic && target.Uploads() == nil {
				cancel(nil)
				continue
			}
			if at == "write" { // in the midst of its requests
				go func() {
					for ctx.Err() == nil && target.Meter().Traffic().Total() < 10 {
						time.Sleep(time.Millisecond)
					}
					cancel(errStop)
				}()
			}
			o := bench.Options{Protocols: []bench.Protocol{p}, Files: 30, Size: 100, Tasks: 4, Parallel: 4}
			_, err := bench.Run(ctx, target, o, func(_ bench.Protocol, step string) {
				if step == at && at != "write" {
					cancel(errStop)
				}
			})
			cancel(nil)
			done := at == "write" && err == nil // it was faster
			if !done && !errors.Is(err, errStop) && !hbackup.IsKind(err, hbackup.KindInterrupted) {
				t.Errorf("%s in %s: %v", p, at, err)
			}
			unchanged(t, s, before)
			if u := target.Uploads(); u != nil {
				if open, err := u.Open(context.WithoutCancel(t.Context()), ""); err != nil || len(open) > 0 {
					t.Errorf("%s in %s: open uploads %v, %v", p, at, open, err)
				}
			}
		}
	}
}

// stop is the cause of a context that a test has ended.
type stop struct{}

func (stop) Error() string { return "stop" }
func (stop) Unwrap() error { return context.Canceled }

var errStop = stop{}
