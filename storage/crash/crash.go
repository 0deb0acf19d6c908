// Package crash is a store whose user dies in the middle of a call, for tests of
// what the next process finds and makes of it.
//
// Every call is a step, counted from 1. At the chosen one the process dies: what
// was acknowledged before is there for ever, as the contract of package storage
// says, and the call itself has one of these fates:
//
//	undone   it never reached the store
//	torn     half of the body of a put had been sent: nothing of it is ever seen.
//	         Any other call is undone
//	done     it was done, and nobody has learnt of it
//	late     a call that changes something is still on its way: it is done only
//	         when another process is at work, just before that one's n-th step.
//	         Any other call is undone
//
// What else was under way at that moment may have been done or not. From then on
// every call is refused, readers and listings that are open included, as if it had
// not been made. Reopen gives the store as the next process finds it.
package crash

import (
	"errors"
	"sync"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
)

// ErrDead is in the chain of the error of every call from the crash on.
var ErrDead = errors.New("the process is dead")

// Fate is what becomes of the call that the process dies in.
type Fate string

// The fates; see the package comment.
const (
	Undone Fate = "undone"
	Torn   Fate = "torn"
	Done   Fate = "done"
	Late   Fate = "late"
)

// Fates lists them all.
var Fates = []Fate{Undone, Torn, Done, Late}

// Plan says when the process dies. The zero value is never.
type Plan struct {
	Step  int  // the call, counted from 1
	Fate  Fate // of that call
	Lands int  // the step of the next process before which a late call is done; 0 means 1
}

// Store is what one process has of a place.
type Store struct {
	plan  Plan
	after func(*mem.Store) // called after each step that may have changed something

	mu      sync.Mutex
	place   *mem.Store
	steps   int
	dead    bool
	late    func(*mem.Store) // of this process: for the next one
	landing func(*mem.Store) // of the process before: not done yet
	lands   int              // the step before which it is
}

var _ storage.Store = (*Store)(nil)

// New gives the place to a process that dies as planned.
func New(place *mem.Store, p Plan) *Store { return &Store{plan: p, place: place} }

// OnChange lets f look at the place after each step that may have changed it, the
// last one included. It is called by one step at a time.
func (s *Store) OnChange(f func(*mem.Store)) { s.after = f }

// Steps gives how many calls were made while the process lived.
func (s *Store) Steps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps
}

// Dead reports whether the process has died.
func (s *Store) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Reopen gives the place to the next process, which dies as planned for it. This
// one is dead from now on at the latest.
func (s *Store) Reopen(p Plan) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	next := &Store{plan: p, after: s.after, place: s.place.Clone(), lands: max(s.plan.Lands, 1)}
	if earlier, late := s.landing, s.late; earlier != nil || late != nil {
		next.landing = func(place *mem.Store) {
			for _, do := range []func(*mem.Store){earlier, late} {
				if do != nil {
					do(place)
				}
			}
		}
	}
	return next
}

// Place gives what is there, with nothing under way any more: a late call is done
// now if it was not before.
func (s *Store) Place() *mem.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.land()
	return s.place
}

func (s *Store) land() {
	if s.landing != nil {
		s.landing(s.place)
		s.landing = nil
	}
}

// step counts a call and gives its fate: "" for one that is simply done.
func (s *Store) step(op string, key storage.Key) (Fate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return "", s.refuse(op, key)
	}
	if s.steps++; s.landing != nil && s.steps >= s.lands {
		s.land()
		s.look()
	}
	if s.steps != s.plan.Step {
		return "", nil
	}
	s.dead = true
	return s.plan.Fate, nil
}

func (s *Store) look() {
	if s.after != nil {
		s.after(s.place)
	}
}

func (s *Store) refuse(op string, key storage.Key) error {
	return hbackup.E(op, s.place.Location().At(key), hbackup.KindInterrupted, ErrDead)
}

// alive fails once the process is dead.
func (s *Store) alive(op string, key storage.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return s.refuse(op, key)
	}
	return nil
}

// ask makes a call that changes nothing.
func ask[T any](s *Store, op string, key storage.Key, call func() (T, error)) (T, error) {
	var none T
	fate, err := s.step(op, key)
	if err != nil {
		return none, err
	}
	if fate != "" {
		return none, s.refuse(op, key)
	}
	t, err := call()
	if dead := s.alive(op, key); dead != nil {
		return none, dead
	}
	return t, err
}

// change makes a call that changes something. Torn does what is done of one that
// is torn; nil means nothing.
func change[T any](s *Store, op string, key storage.Key, call func(*mem.Store) (T, error), torn func()) (T, error) {
	var none T
	fate, err := s.step(op, key)
	if err != nil {
		return none, err
	}
	var t T
	switch {
	case fate == "" || fate == Done:
		t, err = call(s.place)
	case fate == Torn && torn != nil:
		torn()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fate == Late {
		s.late = func(place *mem.Store) { call(place) } // whatever comes of it
	}
	s.look()
	if s.dead {
		return none, s.refuse(op, key)
	}
	return t, err
}
