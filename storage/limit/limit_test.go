package limit

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	rates := Rates{Upload: 1 << 40, Download: 1 << 40, Calls: 1e9}
	storetest.Run(t, func(t *testing.T) storage.Store { return New(mem.New("test"), rates) }, storetest.HeapLimit(-1), storetest.LargeSize(8<<20))
}

func TestHolder(t *testing.T) {
	rates := Rates{Upload: 1 << 40, Download: 1 << 40, Calls: 1e9}
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test"), rates) }, nil)
}

// zeros is a body of n bytes.
func zeros(n int64) io.Reader { return io.LimitReader(nothing{}, n) }

type nothing struct{}

func (nothing) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// near fails when something took another time than it should, by more than what
// the bucket holds.
func near(t *testing.T, what string, took, want time.Duration) {
	t.Helper()
	if took > want || took < want-100*time.Millisecond {
		t.Errorf("%s took %s; want %s", what, took, want)
	}
}

// Rates are measured in a bubble with a clock of its own, so they are exact.
func TestBytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const up, down = 1 << 20, 5000
		s := New(mem.New("test"), Rates{Upload: up, Download: down})
		ctx := t.Context()
		began := time.Now()
		for i := range 3 {
			if _, err := s.Put(ctx, storage.Key(fmt.Sprint(i)), zeros(up), storage.PutOptions{Size: up}); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "three seconds' worth of puts", time.Since(began), 3*time.Second)
		began = time.Now()
		for range 2 {
			body, _, err := s.Get(ctx, "0", storage.Range{Offset: 10, Length: 2 * down})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, body); n != 2*down || err != nil {
				t.Fatal(n, err)
			}
			body.Close()
		}
		near(t, "four seconds' worth of reads", time.Since(began), 4*time.Second)
		began = time.Now()
		for range 1000 {
			s.Stat(ctx, "0")
		}
		near(t, "what has no limit", time.Since(began), 0)
	})
}

func TestCallsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New("test")
		for i := range 2500 {
			if _, err := storage.PutBytes(t.Context(), inner, storage.Key(fmt.Sprintf("%05d", i)), nil, true); err != nil {
				t.Fatal(err)
			}
		}
		s, ctx := New(inner, Rates{Calls: 10}), t.Context()
		began := time.Now()
		for range 10 { // ten calls each
			storage.PutBytes(ctx, s, "a", []byte("x"), false)
			storage.ReadAll(ctx, s, "a", 10)
			s.Stat(ctx, "a")
			s.Stat(ctx, "missing")
			s.Delete(ctx, "a")
			s.DeleteBatch(ctx, []storage.Key{"a", "b", "c"})
			s.ServerTime(ctx)
			n := 0
			for _, err := range s.List(ctx, "", storage.ListOptions{}) { // three of them
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 2500 {
				t.Fatalf("%d objects", n)
			}
		}
		near(t, "a hundred calls", time.Since(began), 10*time.Second)
	})
}

// Of calls that run at once none gets much more than another.
func TestTheRateIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, readers = 1 << 20, 8
		inner := mem.New("test")
		if _, err := inner.Put(t.Context(), "a", zeros(16*rate), storage.PutOptions{Size: 16 * rate}); err != nil {
			t.Fatal(err)
		}
		s := New(inner, Rates{Download: rate})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := make([]int64, readers)
		var wg sync.WaitGroup
		for i := range readers {
			wg.Go(func() {
				body, _, err := s.Get(ctx, "a", storage.Range{})
				if err != nil {
					t.Error(err)
					return
				}
				defer body.Close()
				got[i], _ = io.Copy(io.Discard, body)
			})
		}
		wg.Wait()
		var sum int64
		for _, n := range got {
			sum += n
			if share := int64(10 * rate / readers); n < share*8/10 || n > share*12/10 {
				t.Errorf("one got %d bytes; want about %d", n, share)
			}
		}
		if sum > 10*rate+rate/10 || sum < 8*rate {
			t.Errorf("%d bytes in all", sum)
		}
	})
}

func TestNobodyWaitsPastHisContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New("test")
		if _, err := inner.Put(t.Context(), "a", zeros(1<<20), storage.PutOptions{Size: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		s := New(inner, Rates{Upload: 1000, Download: 1000, Calls: 0.01})
		began := time.Now()
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Stat(late, "a"); err != nil { // the first is free
			t.Fatal(err)
		}
		if _, err := s.Stat(late, "a"); !hbackup.IsKind(err, hbackup.KindTimeout) || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if n := len(inner.Snapshot()); n != 1 {
			t.Errorf("%d objects", n)
		}

		s = New(inner, Rates{Upload: 1000, Download: 1000})
		began = time.Now()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, stop)
		if _, err := s.Put(ctx, "b", zeros(1<<20), storage.PutOptions{Size: 1 << 20}); !hbackup.IsKind(err, hbackup.KindInterrupted) || time.Since(began) != 5*time.Second {
			t.Errorf("a put, after %s: %v", time.Since(began), err)
		}
		if inner.Snapshot()["b"] != nil {
			t.Error("the put was done")
		}
		began = time.Now()
		ctx, stop = context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, stop)
		body, _, err := s.Get(ctx, "a", storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, body); !hbackup.IsKind(err, hbackup.KindInterrupted) || time.Since(began) != 5*time.Second || n > 5100 {
			t.Errorf("a read, after %d bytes and %s: %v", n, time.Since(began), err)
		}
		body.Close()

		// Closing ends a read that waits.
		if body, _, err = s.Get(t.Context(), "a", storage.Range{}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, body)
			done <- err
		}()
		synctest.Wait()
		began = time.Now()
		body.Close()
		if err := <-done; err == nil || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
