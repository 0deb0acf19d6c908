package lease

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/limit"
	"hbackup/storage/mem"
)

const ttl = 30 * time.Second

// newStore gives a store whose clock is hours away from ours and ticks in whole
// seconds, as that of S3 does.
func newStore() *mem.Store {
	return mem.New("lease", mem.WithClock(func() time.Time { return time.Now().Add(3 * time.Hour).Truncate(time.Second) }))
}

func mustAcquire(t *testing.T, s storage.Store, owner string) *Lease {
	t.Helper()
	l, err := Acquire(t.Context(), s, "job", owner, ttl)
	if err != nil {
		t.Fatalf("Acquire for %s: %v", owner, err)
	}
	return l
}

func TestBusyNamesHolderAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := mustAcquire(t, s, "alpha:17")
		_, err := Acquire(t.Context(), s, "job", "beta:18", ttl)
		if !hbackup.IsKind(err, hbackup.KindBusy) {
			t.Fatalf("the second Acquire gave %v; want busy", err)
		}
		for _, want := range []string{"alpha:17", hbackup.FormatTime(a.Holder().Expires), "mem://lease/leases/job/"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %q", err, want)
			}
		}
		if _, err := Acquire(t.Context(), s, "job", "alpha:17", ttl); !hbackup.IsKind(err, hbackup.KindBusy) {
			t.Errorf("an Acquire with the same owner name gave %v; want busy", err)
		}
		if _, err := Acquire(t.Context(), s, "other", "beta:18", ttl); err != nil {
			t.Errorf("another lease is not free: %v", err)
		}
	})
}

func TestReleaseFreesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := mustAcquire(t, s, "a")
		for range 2 {
			if err := a.Release(t.Context()); err != nil {
				t.Fatalf("Release: %v", err)
			}
		}
		if err := a.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("Check after Release gave %v", err)
		}
		if err := a.Renew(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Renew after Release gave %v", err)
		}
		b := mustAcquire(t, s, "b")
		if g := b.Holder().Generation; g != 3 {
			t.Errorf("the generation after acquire, release, acquire is %d; want 3", g)
		}
	})
}

func TestExpiryFreesAndTheOldHolderKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := mustAcquire(t, s, "a")
		time.Sleep(ttl + time.Second)
		if err := a.Check(); !errors.Is(err, ErrLost) {
			t.Fatalf("Check after the expiry gave %v", err)
		}
		mustAcquire(t, s, "b")
		if err := a.Renew(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Renew after the expiry gave %v", err)
		}
		if err := a.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Release after the expiry gave %v", err)
		}
		h, found, err := Read(t.Context(), s, "job")
		if err != nil || !found || h.Owner != "b" {
			t.Errorf("Read gave %+v, %v, %v; want b", h, found, err)
		}
	})
}

func TestReadOfNothing(t *testing.T) {
	h, found, err := Read(t.Context(), mem.New("x"), "nobody")
	if err != nil || found || h.HeldAt(time.Time{}) {
		t.Fatalf("Read gave %+v, %v, %v", h, found, err)
	}
}

func TestKeepHoldsForHoursAndCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := mustAcquire(t, s, "a")
		kept, stop := a.Keep(t.Context())
		for range 60 {
			time.Sleep(3 * time.Minute)
			if kept.Err() != nil || a.Check() != nil {
				t.Fatalf("the lease was lost: %v", context.Cause(kept))
			}
			if _, err := Acquire(t.Context(), s, "job", "b", ttl); !hbackup.IsKind(err, hbackup.KindBusy) {
				t.Fatalf("Acquire beside a kept lease gave %v", err)
			}
			if n := len(s.Snapshot()); n > 100 {
				t.Fatalf("%d generations are kept", n)
			}
		}
		stop()
		if kept.Err() == nil {
			t.Error("the context lives on after stop")
		}
		if err := a.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
		time.Sleep(time.Hour)
		mustAcquire(t, s, "b")
		if n := len(s.Snapshot()); n != 1 {
			t.Errorf("%d generations are left after an hour; want 1", n)
		}
	})
}

func TestKeepGivesUpWhenTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: newStore()}
		a, err := Acquire(t.Context(), s, "job", "a", ttl)
		if err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		kept, stop := a.Keep(t.Context())
		defer stop()
		s.hang.Store(true)
		<-kept.Done()
		if held := time.Since(started); held >= ttl || held < ttl/2 {
			t.Errorf("the context ended after %s; the lease lasts %s", held, ttl)
		}
		if cause := context.Cause(kept); !errors.Is(cause, ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

func TestKeepTellsOfATakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := mustAcquire(t, s, "a")
		kept, stop := a.Keep(t.Context())
		defer stop()
		// Somebody who does not keep the rules.
		data := []byte(`{"version":1,"owner":"vandal","token":"x","acquired":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z","expires":"2099-01-01T00:00:00Z"}`)
		if _, err := storage.PutBytes(t.Context(), s, keyOf("job", 2), data, true); err != nil {
			t.Fatal(err)
		}
		<-kept.Done()
		if cause := context.Cause(kept); !errors.Is(cause, ErrLost) || !strings.Contains(cause.Error(), "vandal") || !hbackup.IsKind(cause, hbackup.KindBusy) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

func TestLostAnswersAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: newStore()}
		s.lose.Store(1)
		a, err := Acquire(t.Context(), s, "job", "a", ttl)
		if err != nil {
			t.Fatalf("Acquire with a lost answer: %v", err)
		}
		s.lose.Store(1)
		if err := a.Renew(t.Context()); err != nil || a.Holder().Generation != 2 {
			t.Fatalf("Renew with a lost answer: %v, %+v", err, a.Holder())
		}
		s.lose.Store(100) // the renewal is made, and never noticed
		if err := a.Renew(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Fatalf("Renew with all answers lost gave %v", err)
		}
		s.lose.Store(0)
		if err := a.Release(t.Context()); err != nil {
			t.Fatalf("Release after a renewal whose answer was lost: %v", err)
		}
		if h, _, err := Read(t.Context(), s, "job"); err != nil || !h.Released || h.Generation != 4 {
			t.Fatalf("Read gave %+v, %v", h, err)
		}
	})
}

func TestDamagedGenerationIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		mustAcquire(t, s, "a")
		s.Tamper(keyOf("job", 1), func([]byte) []byte { return []byte("{") })
		time.Sleep(time.Hour)
		if _, err := Acquire(t.Context(), s, "job", "b", ttl); !hbackup.IsKind(err, hbackup.KindCorrupt) {
			t.Fatalf("Acquire gave %v; want corrupt", err)
		}
	})
}

func TestBadArguments(t *testing.T) {
	s := mem.New("x")
	for _, name := range []string{"", "/", "../x", "a//b", "a/", "a:b", strings.Repeat("n", 300)} {
		if _, err := Acquire(t.Context(), s, name, "a", ttl); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("Acquire of %q gave %v", name, err)
		}
		if _, _, err := Read(t.Context(), s, name); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("Read of %q gave %v", name, err)
		}
	}
	for _, d := range []time.Duration{0, -1, time.Second, 48 * time.Hour} {
		if _, err := Acquire(t.Context(), s, "job", "a", d); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("Acquire for %s gave %v", d, err)
		}
	}
	if len(s.Snapshot()) > 0 {
		t.Error("something was written")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"owner":"a","token":"x","acquired":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z","expires":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data)
		if err != nil {
			if !hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindUnsupported) {
				t.Errorf("decode gave %v", err)
			}
			return
		}
		if r.Token == "" || r.Expires.IsZero() {
			t.Errorf("decode took %+v", r)
		}
	})
}

func TestAGenerationThatCannotBeReadIsSaidToBeSo(t *testing.T) {
	for content, want := range map[string]hbackup.Kind{
		`{`:             hbackup.KindCorrupt,
		`{"version":1}`: hbackup.KindCorrupt,
		`{"version":2}`: hbackup.KindUnsupported,
	} {
		s, ctx := mem.New("damaged"), context.Background()
		if _, err := storage.PutBytes(ctx, s, keyOf("x", 1), []byte(content), true); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(ctx, s, "x"); !hbackup.IsKind(err, want) {
			t.Errorf("%s: %v", content, err)
		}
		if _, err := Acquire(ctx, s, "x", "me", time.Minute); !hbackup.IsKind(err, want) {
			t.Errorf("%s: acquired: %v", content, err)
		}
	}
}

// A lease is renewed and given back although every slot is taken and the rates
// are spent: who copies large files slowly keeps it.
func TestNoLimitHoldsALeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore()
		if _, err := storage.PutBytes(t.Context(), inner, "file", make([]byte, 10<<10), true); err != nil {
			t.Fatal(err)
		}
		s := concurrency.New(limit.New(inner, limit.Rates{Upload: 1, Download: 10, Calls: 0.001}), 1)
		body, _, err := s.Get(t.Context(), "file", storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		l := mustAcquire(t, s, "a")
		kept, stop := l.Keep(t.Context())
		if n, err := io.Copy(io.Discard, body); n != 10<<10 || err != nil { // a quarter of an hour
			t.Fatal(n, err)
		}
		if err := errors.Join(l.Check(), context.Cause(kept)); err != nil {
			t.Error(err)
		}
		stop()
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		mustAcquire(t, s, "b")
	})
}

// Two hosts whose clocks are minutes apart agree on who holds a lease and until when,
// as they go by the store's clock.
func TestHostsWithDifferentClocksAgree(t *testing.T) {
	early := func() time.Time { return time.Now().Add(-7 * time.Minute) }
	late := func() time.Time { return time.Now().Add(11 * time.Minute) }
	for _, c := range []struct {
		name       string
		one, other func() time.Time
	}{{"the holder's is behind", early, late}, {"the holder's is ahead", late, early}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				a, err := acquire(t.Context(), s, "job", "one", ttl, c.one)
				if err != nil {
					t.Fatal(err)
				}
				for held := time.Duration(0); held < 2*ttl; held += ttl / 2 { // renewed twice, by its own clock
					if _, err := acquire(t.Context(), s, "job", "other", ttl, c.other); !hbackup.IsKind(err, hbackup.KindBusy) {
						t.Fatalf("after %s the other got %v", held, err)
					}
					time.Sleep(ttl / 2)
					if err := errors.Join(a.Renew(t.Context()), a.Confirm(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
				at, err := s.ServerTime(t.Context())
				if err != nil || !a.Holder().Expires.Equal(at.Add(ttl)) {
					t.Errorf("it is held until %s, at %s (%v)", a.Holder().Expires, at, err)
				}
				time.Sleep(ttl + time.Second)
				b, err := acquire(t.Context(), s, "job", "other", ttl, c.other)
				if err != nil || b.Holder().Generation <= a.Holder().Generation {
					t.Fatalf("when it has expired: %+v, %v", b, err)
				}
				if err := a.Check(); !errors.Is(err, ErrLost) {
					t.Errorf("the first holder: %v", err)
				}
			})
		})
	}
}

// The clocks of a machine stand still while it is suspended. It thinks that it holds
// the lease, and learns from the store that it does not.
func TestASuspendedHolderLearnsFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		from := time.Now()
		a, err := acquire(t.Context(), s, "job", "suspended", ttl, func() time.Time { return from })
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl + time.Second)
		mustAcquire(t, s, "other")
		if err := a.Check(); err != nil {
			t.Fatalf("it knows by itself: %v", err)
		}
		if err := a.Confirm(t.Context()); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "other") {
			t.Errorf("the store said %v", err)
		}
		if err := a.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("afterwards: %v", err)
		}
	})
}
