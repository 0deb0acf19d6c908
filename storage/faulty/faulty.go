package faulty

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// ErrInjected is in the chain of every error that this package makes.
var ErrInjected = errors.New("injected fault")

// Store fails by its script and passes everything else on.
type Store struct {
	storage.Store

	mu    sync.Mutex
	rules []*rule
	rnd   *rand.Rand
	calls map[string]int
	hits  int
	late  []*late
}

// late is a call that is done before a later one.
type late struct {
	after int // so many calls
	do    func()
}

var _ storage.Store = (*Store)(nil)

// New wraps inner. The same script gives the same faults for the same calls in
// the same order.
func New(inner storage.Store, script string) (*Store, error) {
	s := &Store{Store: inner, rnd: rand.New(rand.NewPCG(1, 2)), calls: map[string]int{}}
	return s, s.SetScript(script)
}

// SetScript replaces the script; its rules count from the start.
func (s *Store) SetScript(script string) error {
	rules, err := parse(script)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
	return nil
}

// Calls gives how many calls there were of each operation, by the names of
// scripts, and of all together under "any". A test that fails every call once
// counts them first, and then runs with "any#1:fail", "any#2:fail", and so on.
func (s *Store) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Hits gives how many calls a rule applied to. A test whose faults never
// happened has shown nothing.
func (s *Store) Hits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

// next counts a call and gives its fault; the name is "" for none. Delays and
// hangs are over when it returns.
func (s *Store) next(ctx context.Context, op string, keys ...storage.Key) (fault, error) {
	f, due := s.pick(op, keys...)
	for _, l := range due {
		l.do()
	}
	path := string(s.Location())
	if len(keys) > 0 {
		path = s.Location().At(keys[0])
	}
	switch f.name {
	case "fail":
		return f, f.err(op, path)
	case "hang":
		<-ctx.Done()
		return f, hbackup.E(op, path, hbackup.KindOther, ctx.Err())
	case "delay":
		select {
		case <-ctx.Done():
			return f, hbackup.E(op, path, hbackup.KindOther, ctx.Err())
		case <-time.After(f.delay):
		}
	}
	return f, nil
}

// pick counts a call and gives its fault, and the calls that are to be done before.
func (s *Store) pick(op string, keys ...storage.Key) (picked fault, due []*late) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = slices.DeleteFunc(s.late, func(l *late) bool {
		if l.after--; l.after == 0 {
			due = append(due, l)
		}
		return l.after == 0
	})
	s.calls[op]++
	s.calls[opAny]++
	for _, r := range s.rules {
		if r.applies(op, keys...) && picked.name == "" {
			picked = r.fault
			s.hits++
		}
	}
	return picked, due
}

// postpone lets a call be done later, and gives the error that is given now.
func (s *Store) postpone(f fault, op, path string, do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, &late{f.count, do})
	return f.err(op, path)
}

func (f fault) err(op, path string) error {
	return hbackup.E(op, path, f.kind, fmt.Errorf("%w: %s", ErrInjected, f.name))
}

// lost gives the error for an answer that does not come, or what came.
func (f fault) lost(op, path string, err error) error {
	if f.name == "lost" {
		return f.err(op, path)
	}
	return err
}

// Stat can fail.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	f, err := s.next(ctx, opStat, key)
	if err != nil {
		return storage.Object{}, err
	}
	obj, err := s.Store.Stat(ctx, key)
	if err := f.lost(opStat, s.Location().At(key), err); err != nil {
		return storage.Object{}, err
	}
	return obj, nil
}

// ServerTime can fail.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	f, err := s.next(ctx, opTime)
	if err != nil {
		return time.Time{}, err
	}
	t, err := s.Store.ServerTime(ctx)
	if err := f.lost(opTime, string(s.Location()), err); err != nil {
		return time.Time{}, err
	}
	if f.name == "skew" {
		t = t.Add(f.delay)
	}
	return t, nil
}
