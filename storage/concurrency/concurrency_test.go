package concurrency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

// Two slots are what the suite needs; all must be back at the end.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return balanced{New(mem.New("test"), 2)} }, storetest.HeapLimit(-1), storetest.LargeSize(8<<20))
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return balanced{New(mem.New("test"), 2)} }, nil)
}

type balanced struct{ *Store }

func (b balanced) Close() error {
	if !b.slots.TryAcquire(2) {
		return errors.New("a slot was not given back")
	}
	return b.Store.Close()
}

// busy notes how many calls are under way at once. Each takes a while.
type busy struct {
	storage.Store
	now, most atomic.Int64
}

func (b *busy) in() func() {
	n := b.now.Add(1)
	for m := b.most.Load(); n > m && !b.most.CompareAndSwap(m, n); m = b.most.Load() {
	}
	time.Sleep(time.Second)
	return func() { b.now.Add(-1) }
}

func (b *busy) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (storage.Object, error) {
	defer b.in()()
	return b.Store.Put(ctx, key, body, o)
}

func (b *busy) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	defer b.in()()
	return b.Store.Get(ctx, key, r)
}

func (b *busy) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	defer b.in()()
	return b.Store.Stat(ctx, key)
}

func (b *busy) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	defer b.in()()
	return b.Store.List(ctx, prefix, o)
}

func (b *busy) Delete(ctx context.Context, key storage.Key) error {
	defer b.in()()
	return b.Store.Delete(ctx, key)
}

func (b *busy) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	defer b.in()()
	return b.Store.DeleteBatch(ctx, keys)
}

func (b *busy) ServerTime(ctx context.Context) (time.Time, error) {
	defer b.in()()
	return b.Store.ServerTime(ctx)
}

func TestNeverMoreThanSoManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &busy{Store: mem.New("test")}
		s, ctx := New(inner, 3), t.Context()
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 4 {
			key := storage.Key(fmt.Sprint("k", i))
			for _, call := range []func(){
				func() { storage.PutBytes(ctx, s, key, []byte("x"), true) },
				func() { s.Get(ctx, "missing", storage.Range{}) },
				func() { s.Stat(ctx, key) },
				func() {
					for range s.List(ctx, "", storage.ListOptions{}) {
					}
				},
				func() { s.Delete(ctx, "other") },
				func() { s.DeleteBatch(ctx, []storage.Key{"other"}) },
				func() { s.ServerTime(ctx) },
			} {
				wg.Go(call)
			}
		}
		wg.Wait()
		// 28 calls of a second each, three at a time.
		if took := time.Since(began); inner.most.Load() != 3 || took != 10*time.Second {
			t.Errorf("%d at once, in %s", inner.most.Load(), took)
		}
	})
}

func TestAReadCountsUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(mem.New("test"), 1)
		if _, err := storage.PutBytes(t.Context(), s, "a", []byte("x"), true); err != nil {
			t.Fatal(err)
		}
		body, _, err := s.Get(t.Context(), "a", storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := s.Stat(ctx, "a"); !hbackup.IsKind(err, hbackup.KindTimeout) || time.Since(began) != time.Minute || !strings.Contains(err.Error(), "mem://test/a") {
			t.Errorf("while the body is open: %v after %s", err, time.Since(began))
		}
		body.Close()
		body.Close() // gives back nothing more
		if _, err := s.Stat(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		body, _, err = s.Get(t.Context(), "a", storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := s.Delete(ctx, "a"); !hbackup.IsKind(err, hbackup.KindInterrupted) {
			t.Errorf("a second close has given back a slot: %v", err)
		}
	})
}

// What is listed can be read within the loop, and a loop that is left leaves
// nothing behind.
func TestAListingLetsOthersIn(t *testing.T) {
	s, ctx := New(mem.New("test"), 1), t.Context()
	for _, key := range []storage.Key{"a", "b", "c"} {
		if _, err := storage.PutBytes(ctx, s, key, []byte(key), true); err != nil {
			t.Fatal(err)
		}
	}
	for _, leave := range []bool{false, true} {
		n := 0
		for obj, err := range s.List(ctx, "", storage.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := storage.ReadAll(ctx, s, obj.Key, 10); err != nil {
				t.Fatal(err)
			}
			if n++; leave {
				break
			}
		}
		if want := map[bool]int{false: 3, true: 1}[leave]; n != want {
			t.Errorf("%d objects; want %d", n, want)
		}
	}
	if _, err := s.ServerTime(ctx); err != nil {
		t.Error(err)
	}
	// Another who has the slot for good ends the listing.
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	for _, err := range s.List(over, "", storage.ListOptions{}) {
		if failure = err; err == nil {
			cancel()
			if s.slots.Acquire(ctx, 1) != nil {
				t.Fatal("the slot is not free")
			}
		}
	}
	if !hbackup.IsKind(failure, hbackup.KindInterrupted) {
		t.Errorf("it ended with %v", failure)
	}
}
