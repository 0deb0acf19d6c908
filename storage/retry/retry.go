// Package retry repeats calls of a store that failed for a moment, for kinds of
// stores that do not repeat their requests themselves.
//
// A call is repeated after the errors that hbackup.Retryable names, with pauses
// that double and are spread, as long as it gets on or its time is not over, and
// never past its context:
//
//   - Stat, ServerTime and opening a Get are asked again.
//   - A reader that breaks off goes on at the byte that it reached, if the object
//     is still the same one.
//   - A listing goes on behind the last key that it gave.
//   - A deletion is done again, of a batch only the keys that are not known to be
//     gone. So nobody may put under a key while another deletes it and expect the
//     object to stay. Nothing in hbackup does: what is to be a signal, such as a
//     lease, is a new key each time.
//   - A put is done again when its body can be read again, which is when it is an
//     io.Seeker. An attempt of which the answer was lost may have been done, or be
//     done later still. So when the key of a create turns out to be taken
//     afterwards, the object is looked at: with the bytes of this put it is ours,
//     with others it is somebody else's. Two writers that create one key with the
//     same bytes may both be told that they won, if an answer was lost; who must
//     know puts something of his own into the bytes, as leases do.
//
// What is not settled when the time is over is given back as the error that left
// it open, not as a later one that would say that nothing was done.
package retry

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Options bound the repeating. The zero value of a field means its default.
type Options struct {
	For   time.Duration // how long a call is repeated without getting on; default 30 s
	First time.Duration // the first pause; default 100 ms
	Most  time.Duration // the longest pause; default 5 s
	Log   *slog.Logger  // gets a warning for each repetition; default none
}

func (o Options) withDefaults() Options {
	if o.For <= 0 {
		o.For = 30 * time.Second
	}
	if o.First <= 0 {
		o.First = 100 * time.Millisecond
	}
	if o.Most <= 0 {
		o.Most = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store repeats what failed for a moment.
type Store struct {
	storage.Store
	o Options
}

var _ storage.Store = (*Store)(nil)

// New wraps inner.
func New(inner storage.Store, o Options) *Store {
	return &Store{Store: inner, o: o.withDefaults()}
}

// patience is what is left of one call: its pauses and its time.
type patience struct {
	*Store
	op    string
	path  string
	tries int       // failures since the call last got on
	began time.Time // of the first of them
}

func (s *Store) patience(op string, key storage.Key) *patience {
	return &patience{Store: s, op: op, path: s.Location().At(key)}
}

// progress notes that the call got on.
func (p *patience) progress() { p.tries = 0 }

// again waits before the call is repeated. It gives false when it must not be:
// the error is of another kind, the time is over, or the context is or would be.
func (p *patience) again(ctx context.Context, err error) bool {
	if !hbackup.Retryable(err) || ctx.Err() != nil {
		return false
	}
	return p.wait(ctx, err)
}

// wait is again for an error that the caller has judged.
func (p *patience) wait(ctx context.Context, err error) bool {
	if p.tries == 0 {
		p.began = time.Now()
	}
	pause := min(p.o.First<<min(p.tries, 20), p.o.Most)
	pause = pause/2 + rand.N(pause/2+1) // those that failed together do not come back together
	p.tries++
	next := time.Now().Add(pause)
	if next.Sub(p.began) > p.o.For {
		return false
	}
	if end, ok := ctx.Deadline(); ok && next.After(end) {
		return false
	}
	p.o.Log.Warn("repeating a call to a store", "operation", p.op, "path", p.path, "try", p.tries+1, "after", err)
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// over gives the error of a call that is not repeated: that of the context when
// its end is the reason.
func (p *patience) over(ctx context.Context, err error) error {
	if ctx.Err() == nil || !passing(err) {
		return err
	}
	return hbackup.E(p.op, p.path, hbackup.KindOf(ctx.Err()), fmt.Errorf("%w, after: %w", ctx.Err(), err))
}

// ask repeats a call that may be repeated as it is.
func ask[T any](ctx context.Context, p *patience, call func() (T, error)) (T, error) {
	for {
		t, err := call()
		if err == nil || !p.again(ctx, err) {
			return t, p.over(ctx, err)
		}
	}
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	return ask(ctx, s.patience("stat", key), func() (storage.Object, error) { return s.Store.Stat(ctx, key) })
}

// ServerTime gives the clock of the store.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	return ask(ctx, s.patience("ask the time of", ""), func() (time.Time, error) { return s.Store.ServerTime(ctx) })
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	_, err := ask(ctx, s.patience("delete", key), func() (struct{}, error) { return struct{}{}, s.Store.Delete(ctx, key) })
	return err
}
