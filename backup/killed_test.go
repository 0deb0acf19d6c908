package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/lease"
	"hbackup/storage/s3"
)

// childEnv tells a process of this test binary what it is to do.
const childEnv = "HBACKUP_TEST_BACKUP"

// child is a backup in a process of its own, which meets its fate at one of its
// calls to the store.
type child struct {
	Root   string
	Files  map[string][]string // of each table
	Place  place
	Call   int // counted from 1; 0: none
	Fate   fate
	Report string // file that gets the number of calls, or when it is stopped
}

type fate string

const (
	killedBefore fate = "killed before" // the call
	killedAfter  fate = "killed after"  // the call was done
	stopped      fate = "stopped before"
)

// place is a location that another process can open.
type place struct {
	Dir                   string // or
	Endpoint, Prefix      string // of the S3 gateway
	AccessKey, SecretKey  string
	Region, Bucket, Label string
}

func (p place) open() (storage.Store, error) {
	if p.Dir != "" {
		at, err := storage.ParseLocation("file://" + p.Dir)
		if err != nil {
			return nil, err
		}
		return file.Open(at)
	}
	os.Setenv("HBACKUP_TEST_ACCESS", p.AccessKey)
	os.Setenv("HBACKUP_TEST_SECRET", p.SecretKey)
	return s3.New(context.Background(), s3.Config{Bucket: p.Bucket, Prefix: p.Prefix, Region: p.Region, Endpoint: p.Endpoint, PathStyle: true,
		Credentials: s3.Credentials{AccessKey: "env:HBACKUP_TEST_ACCESS", SecretKey: "env:HBACKUP_TEST_SECRET"}})
}

var items = hbackup.TableName{Namespace: "ns", Qualifier: "items"}

// shortLease is that of a child: when it has died it is waited for.
const shortLease = lease.MinTTL

func matrixRun(ctx context.Context, w *world, s storage.Store, id hbackup.RequestID, ttl time.Duration) (backup.Result, error) {
	return backup.Run(ctx, backup.Request{ID: id, Cluster: "prod", Tables: []hbackup.TableName{items, orders}},
		backup.Source{Master: onDisk{w}, FS: w.fs, Root: w.root}, backup.Target{Location: s, Name: "main"},
		backup.Options{Files: 2, Tables: 1, Host: "test", Writer: "test", LeaseTTL: ttl, Journal: backup.JournalBounds{Files: 1}})
}

// onDisk is the master of a world whose snapshots outlive the process.
type onDisk struct{ *world }

func (m onDisk) Snapshots(ctx context.Context) ([]rpc.SnapshotInfo, error) {
	dirs, err := os.ReadDir(filepath.Dir(snapshot.SnapshotDir(m.root, "x")))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var out []rpc.SnapshotInfo
	for _, d := range dirs {
		data, err := os.ReadFile(filepath.Join(snapshot.SnapshotDir(m.root, d.Name()), ".snapshotinfo"))
		if err != nil {
			continue // just being made or deleted
		}
		info, err := snapshot.DecodeDescription(data)
		if err != nil {
			return nil, err
		}
		out = append(out, rpc.SnapshotInfo{Name: info.Name, Table: info.Table, Created: info.Created})
	}
	return out, nil
}

// beChild is all that the process of a child does.
func beChild(text string) {
	var c child
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c child) run() error {
	w := &world{root: c.Root, fs: rootfs.Local(), now: time.Now(), tables: map[hbackup.TableName]*table{}, snapshots: map[string]rpc.SnapshotInfo{}}
	for name, files := range c.Files {
		t := hbackup.TableName{Namespace: "ns", Qualifier: name}
		w.tables[t] = &table{region: snapshot.EncodeRegionName(t, nil, 1, 0), files: files}
	}
	s, err := c.Place.open()
	if err != nil {
		return err
	}
	f := &fated{Store: s, child: c}
	_, err = matrixRun(context.Background(), w, f, "r", shortLease)
	if c.Call == 0 {
		err = errors.Join(err, os.WriteFile(c.Report, fmt.Append(nil, f.calls.Load()), 0o600))
	}
	return err
}

// fated meets its child's fate.
type fated struct {
	storage.Store
	child child
	calls atomic.Int64
}

// around counts a call, and ends or stops the process before it or after it.
func (f *fated) around(call func()) {
	mine := f.calls.Add(1) == int64(f.child.Call)
	if mine && f.child.Fate == killedBefore {
		die()
	}
	if mine && f.child.Fate == stopped {
		if err := os.WriteFile(f.child.Report, nil, 0o600); err != nil {
			panic(err)
		}
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	call()
	if mine && f.child.Fate == killedAfter {
		die()
	}
}

func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (f *fated) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (obj storage.Object, err error) {
	f.around(func() { obj, err = f.Store.Put(ctx, key, body, o) })
	return obj, err
}

func (f *fated) Get(ctx context.Context, key storage.Key, r storage.Range) (body io.ReadCloser, obj storage.Object, err error) {
	f.around(func() { body, obj, err = f.Store.Get(ctx, key, r) })
	return body, obj, err
}

func (f *fated) Stat(ctx context.Context, key storage.Key) (obj storage.Object, err error) {
	f.around(func() { obj, err = f.Store.Stat(ctx, key) })
	return obj, err
}

func (f *fated) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		f.around(func() { f.Store.List(ctx, prefix, o)(yield) })
	}
}

func (f *fated) Delete(ctx context.Context, key storage.Key) (err error) {
	f.around(func() { err = f.Store.Delete(ctx, key) })
	return err
}

func (f *fated) DeleteBatch(ctx context.Context, keys []storage.Key) (failures []storage.DeleteFailure, err error) {
	f.around(func() { failures, err = f.Store.DeleteBatch(ctx, keys) })
	return failures, err
}

func (f *fated) ServerTime(ctx context.Context) (now time.Time, err error) {
	f.around(func() { now, err = f.Store.ServerTime(ctx) })
	return now, err
}

// TestKilledProcesses kills the process of a backup of two tables before and after
// each of its calls to the store, on a directory and on an S3 gateway, and stops
// others at each call until somebody else has done their work. Then the same request
// runs again, and nothing is lost, half, double or left.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	places := map[string]func(t *testing.T) place{"directory": func(t *testing.T) place {
		return place{Dir: filepath.Join(t.TempDir(), "location")}
	}}
	fates := []fate{killedBefore, killedAfter, stopped}
	every := 1
	if testing.Short() {
		every = 9
	} else {
		gateway := servers.ForTest(t).S3(servers.S3Options{Buckets: []string{"backups"}})
		var n atomic.Int64
		places["S3"] = func(t *testing.T) place {
			return place{Endpoint: gateway.Endpoint(), Bucket: "backups", Prefix: fmt.Sprintf("p%d", n.Add(1)), Region: gateway.Region,
				AccessKey: gateway.AccessKey, SecretKey: gateway.SecretKey}
		}
	}
	// They wait for leases most of the time, so there are more than go test would
	// run in parallel.
	slots := make(chan struct{}, 48)
	var ended atomic.Int64
	var wg sync.WaitGroup
	for kind, make := range places {
		calls := callsOfARun(t, make(t))
		if calls < 20 {
			t.Fatalf("a run makes %d calls", calls)
		}
		stride := every
		if kind == "S3" { // slower; of two fates in a row each has the calls that the other leaves out
			stride *= 2
		}
		for i, how := range fates {
			for call := 1 + i%stride; call <= calls; call += stride {
				slots <- struct{}{}
				wg.Go(func() {
					defer func() { <-slots }()
					t.Run(fmt.Sprintf("%s, %s call %d", kind, how, call), func(t *testing.T) {
						if meetFate(t, make(t), call, how) {
							ended.Add(1)
						}
					})
				})
			}
		}
	}
	wg.Wait()
	if n := ended.Load(); !testing.Short() && n < 200 {
		t.Errorf("%d processes were killed or stopped, want 200 at least", n)
	} else {
		t.Logf("%d processes were killed or stopped", n)
	}
}

// matrixWorld makes a world with images of an earlier run in the location, and files
// that are not in it yet.
func matrixWorld(t *testing.T, at place) (*world, storage.Store) {
	t.Helper()
	if at.Dir != "" {
		if err := os.Mkdir(at.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	w.add(t, items, "2.6-none.hfile")
	s, err := at.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if r, err := matrixRun(t.Context(), w, s, "kept", 0); err != nil || r.State != catalog.StateComplete {
		t.Fatalf("the first backup: %+v, %v", r, err)
	}
	for range 3 {
		w.addFile(t, orders, "2.6-none.hfile")
	}
	return w, s
}

func (w *world) child(at place, call int, how fate, report string) *exec.Cmd {
	c := child{Root: w.root, Files: map[string][]string{}, Place: at, Call: call, Fate: how, Report: report}
	for name, tb := range w.tables {
		c.Files[name.Qualifier] = tb.files
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return cmd
}

// callsOfARun counts the calls to the store of a run that nothing happens to.
func callsOfARun(t *testing.T, at place) int {
	t.Helper()
	w, _ := matrixWorld(t, at)
	report := filepath.Join(t.TempDir(), "calls")
	if out, err := w.child(at, 0, "", report).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(string(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// meetFate has a child meet its fate and goes on with its request. It gives false
// when the child was done before.
func meetFate(t *testing.T, at place, call int, how fate) bool {
	w, s := matrixWorld(t, at)
	report := filepath.Join(t.TempDir(), "stopped")
	cmd := w.child(at, call, how, report)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	met := true
	var after func() // when the request has been gone on with
	if how == stopped {
		if met = awaitStop(t, report, exited); met {
			after = func() {
				// It wakes up when its lease is another's, or its work is done.
				if err := cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Error(err)
				}
				<-exited
			}
			t.Cleanup(func() { cmd.Process.Kill() })
		}
	} else {
		err := <-exited
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if met = killed; !killed && err != nil { // on a machine that is busy it may lose its lease
			t.Logf("the child: %v: %s", err, out.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := matrixRun(ctx, w, s, "r", 0)
	if err != nil || r.State != catalog.StateComplete {
		t.Fatalf("the same request: %+v, %v; the child: %s", r, err, out.String())
	}
	if after != nil {
		after()
	}
	again, err := matrixRun(ctx, w, s, "r", 0)
	if err != nil || !again.AlreadyDone || again.ID != r.ID {
		t.Fatalf("once more: %+v, %v, after %+v", again, err, r)
	}
	if next, err := matrixRun(ctx, w, s, "next", 0); err != nil || next.State != catalog.StateComplete {
		t.Fatalf("the next request: %+v, %v", next, err)
	}
	w.store = s
	w.assertWhole(t, map[hbackup.RequestID]int{"kept": 4, "r": 7, "next": 7})
	if left, err := (onDisk{w}).Snapshots(ctx); err != nil || len(left) > 0 {
		t.Errorf("snapshots are left: %v, %v", left, err)
	}
	if at.Dir != "" {
		noHalfFiles(t, at.Dir)
	}
	return met
}

// awaitStop waits until the child says that it stops, or has ended.
func awaitStop(t *testing.T, report string, exited <-chan error) bool {
	t.Helper()
	for tick := time.NewTicker(2 * time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(report); err == nil {
			return true
		}
		select {
		case err := <-exited:
			if err != nil {
				t.Logf("the child: %v", err)
			}
			return false
		default:
		}
	}
}

// assertWhole fails unless the history, read from storage alone, has exactly the runs
// of the requests, all complete, with so many files in all, and every file of every
// image has the bytes of the cluster's.
func (w *world) assertWhole(t *testing.T, files map[hbackup.RequestID]int) {
	t.Helper()
	ctx := context.Background()
	h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "main", Store: w.folder()}})
	if len(h.Unreachable) > 0 {
		t.Fatal(h.Unreachable)
	}
	seen := map[hbackup.RequestID]bool{}
	for _, e := range h.Entries {
		total := 0
		for _, line := range e.Tables {
			im, err := catalog.ReadImage(ctx, w.folder(), line.Table, line.Image)
			if err != nil {
				t.Fatalf("%s of %s: %v", line.Table, e.Request, err)
			}
			total += len(im.Files)
			for _, f := range im.Files {
				got, _, err := storage.ReadAll(ctx, w.folder(), f.Key(), 64<<20)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(w.path(f.Table, f.Name))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s has other bytes than the cluster's: %v", f.Key(), err)
				}
			}
		}
		if e.State != catalog.StateComplete || total != files[e.Request] || seen[e.Request] {
			t.Errorf("%s is %s with %d files, want %d; seen before: %v", e.Request, e.State, total, files[e.Request], seen[e.Request])
		}
		seen[e.Request] = true
		// A process that was killed when all was done has its lease for a moment yet.
		h, _, err := lease.Read(ctx, w.folder(), catalog.RunLease(e.ID))
		if now, terr := w.store.ServerTime(ctx); err != nil || terr != nil || h.Expires.Sub(now) > shortLease {
			t.Errorf("the lease of %s: %+v, %v, %v", e.Request, h, err, terr)
		}
	}
	if len(seen) != len(files) {
		t.Errorf("the history has %v, want %v", slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(files)))
	}
	if n := len(w.verified(t)); n != 2*len(files) {
		t.Errorf("%d images for %d runs of two tables", n, len(files))
	}
}

// noHalfFiles fails when there is anything in a directory that is no object: nobody
// can have been in the middle of a file without a name.
func noHalfFiles(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".hbackup-tmp", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}
