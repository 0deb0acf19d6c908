package lease

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/mem"
)

// slow is a store over a bad line: answers take their time, get lost, or never
// come, and listings may be old.
type slow struct {
	storage.Store
	hang  atomic.Bool
	lose  atomic.Int64 // so many puts are done and not answered
	delay func() time.Duration
	stale func() storage.Store // where a listing comes from
}

func (s *slow) wait(ctx context.Context) error {
	if s.hang.Load() {
		<-ctx.Done()
	}
	if s.delay != nil {
		time.Sleep(s.delay()) // a process that stands still does not see its context either
	}
	if err := ctx.Err(); err != nil {
		return hbackup.E("wait", string(s.Location()), hbackup.KindOther, err)
	}
	return nil
}

func (s *slow) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := s.wait(ctx); err != nil {
		return storage.Object{}, err
	}
	obj, err := s.Store.Put(context.WithoutCancel(ctx), key, body, opts)
	if s.lose.Add(-1) >= 0 {
		return storage.Object{}, hbackup.Errorf("put", s.Location().At(key), hbackup.KindUnavailable, "the answer is lost")
	}
	if werr := s.wait(ctx); werr != nil {
		return obj, werr
	}
	return obj, err
}

func (s *slow) ServerTime(ctx context.Context) (time.Time, error) {
	if err := s.wait(ctx); err != nil {
		return time.Time{}, err
	}
	t, err := s.Store.ServerTime(ctx)
	if err := s.wait(ctx); err != nil {
		return time.Time{}, err
	}
	return t, err
}

func (s *slow) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	from := s.Store
	if s.stale != nil {
		from = s.stale()
	}
	if err := s.wait(ctx); err != nil {
		return func(yield func(storage.Object, error) bool) { yield(storage.Object{}, err) }
	}
	return from.List(ctx, prefix, opts)
}

// TestFiftyAtOnce lets fifty start at the same moment: one wins.
func TestFiftyAtOnce(t *testing.T) {
	for round := range 25 {
		var s storage.Store = mem.New("lease")
		if round%5 == 0 { // and in a directory, which has a clock of its own
			dir, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			s = dir
		}
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				switch _, err := Acquire(t.Context(), s, "job", fmt.Sprint(i), ttl); {
				case err == nil:
					won.Add(1)
				case !hbackup.IsKind(err, hbackup.KindBusy):
					t.Errorf("Acquire: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of fifty hold the lease", won.Load())
		}
	}
}

// watcher knows every lease of a simulation and looks at them all the time.
type watcher struct {
	mu     sync.Mutex
	leases []*Lease
}

func (w *watcher) add(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases = append(w.leases, l)
	w.look(nil)
}

// look gives how many think that they hold the lease, forgetting the others.
func (w *watcher) look(t *testing.T) int {
	var held []*Lease
	for _, l := range w.leases {
		if l.Check() == nil {
			held = append(held, l)
		}
	}
	w.leases = held
	if len(held) > 1 && t != nil {
		t.Errorf("%s and %s both hold the lease, generations %d and %d", held[0].Holder().Owner, held[1].Holder().Owner,
			held[0].Holder().Generation, held[1].Holder().Generation)
	}
	return len(held)
}

// TestOneHolderAtATime simulates hours in which many contend for a lease: they
// work, renew, stand still for a while, die without a word; answers are slow
// listings are minutes old, and the hosts' clocks far apart. At no moment do two
// think that they hold it.
func TestOneHolderAtATime(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { contend(t, seed) })
		})
	}
}

func contend(t *testing.T, seed uint64) {
	ctx, end := context.WithTimeout(t.Context(), 3*time.Hour)
	defer end()
	truth := newStore()
	var past pastStores
	var w watcher
	var acquired atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			w.mu.Lock()
			w.look(t)
			w.mu.Unlock()
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			past.remember(truth.Clone())
			time.Sleep(20 * time.Second)
		}
	})
	for i := range 12 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			now := time.Now
			if seed%2 == 1 {
				now = offClock(rnd)
			}
			s := &slow{Store: truth, delay: pauses(rnd)}
			if seed%3 == 0 {
				s.stale = func() storage.Store { return past.some(rnd, truth) }
			}
			for ctx.Err() == nil {
				time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Second))))
				if rnd.IntN(10) == 0 {
					s.lose.Store(int64(rnd.IntN(5)))
				}
				lifetime := MinTTL + time.Duration(rnd.Int64N(int64(2*time.Minute)))
				l, err := acquire(ctx, s, "job", fmt.Sprint(i), lifetime, now)
				if err != nil {
					continue
				}
				acquired.Add(1)
				w.add(l)
				work(ctx, l, rnd)
			}
		})
	}
	wg.Wait()
	if n := acquired.Load(); n < 10 {
		t.Errorf("the lease was acquired %d times in three hours", n)
	}
	if n := len(truth.Snapshot()); n > 400 {
		t.Errorf("%d generations are left", n)
	}
}

// offClock is the clock of a host that is up to half an hour wrong.
func offClock(rnd *rand.Rand) func() time.Time {
	off := time.Duration(rnd.Int64N(int64(time.Hour))) - 30*time.Minute
	return func() time.Time { return time.Now().Add(off) }
}

// work renews a few times, then releases or dies.
func work(ctx context.Context, l *Lease, rnd *rand.Rand) {
	for range rnd.IntN(20) {
		time.Sleep(time.Duration(rnd.Int64N(int64(l.ttl))))
		if l.Renew(ctx) != nil && l.Check() != nil {
			return
		}
	}
	if rnd.IntN(2) == 0 {
		l.Release(ctx)
	}
}

// pauses gives delays that are short most of the time and very long sometimes.
func pauses(rnd *rand.Rand) func() time.Duration {
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		switch rnd.IntN(100) {
		case 0:
			return time.Duration(rnd.Int64N(int64(20 * time.Minute)))
		case 1, 2, 3:
			return time.Duration(rnd.Int64N(int64(time.Minute)))
		}
		return time.Duration(rnd.Int64N(int64(300 * time.Millisecond)))
	}
}

// pastStores holds what the store was during the last minutes.
type pastStores struct {
	mu     sync.Mutex
	states []storage.Store
}

func (p *pastStores) remember(s storage.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states = append(p.states, s); len(p.states) > 12 { // four minutes
		p.states = p.states[1:]
	}
}

func (p *pastStores) some(rnd *rand.Rand, now storage.Store) storage.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := rnd.IntN(2*len(p.states) + 1); i < len(p.states) {
		return p.states[i]
	}
	return now
}
