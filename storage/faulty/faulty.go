package faulty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
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
	f := s.pick(op, keys...)
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

func (s *Store) pick(op string, keys ...storage.Key) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	s.calls[opAny]++
	var picked fault
	for _, r := range s.rules {
		if r.applies(op, keys...) && picked.name == "" {
			picked = r.fault
			s.hits++
		}
	}
	return picked
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

// Put can fail before, after, or in the middle of the body.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	f, err := s.next(ctx, opPut, key)
	if err != nil {
		return storage.Object{}, err
	}
	path := s.Location().At(key)
	if f.name == "half" {
		body = io.MultiReader(io.LimitReader(body, opts.Size/2), broken{f.err(opPut, path)})
	}
	obj, err := s.Store.Put(ctx, key, body, opts)
	if err := f.lost(opPut, path, err); err != nil {
		return storage.Object{}, err
	}
	return obj, nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// Get can fail when it opens and later, or give what is not there.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	f, err := s.next(ctx, opGet, key)
	if err != nil {
		return nil, storage.Object{}, err
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil {
		return nil, obj, err
	}
	path := s.Location().At(key)
	_, length, err := r.Of(obj.Size)
	switch {
	case f.name == "lost":
		return nil, storage.Object{}, errors.Join(f.err(opGet, path), body.Close())
	case err != nil:
		return nil, storage.Object{}, errors.Join(err, body.Close())
	case f.name == "half":
		return &reader{io.MultiReader(io.LimitReader(body, length/2), broken{f.err("read", path)}), body}, obj, nil
	case f.name == "cut":
		return &reader{io.LimitReader(body, length/2), body}, obj, nil
	case f.name == "flip":
		return &reader{&flipper{r: body, at: length / 2}, body}, obj, nil
	}
	return body, obj, nil
}

type reader struct {
	io.Reader
	io.Closer
}

// flipper turns one bit of the byte at a position.
type flipper struct {
	r  io.Reader
	at int64
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if f.at >= 0 && f.at < int64(n) {
		p[f.at] ^= 1
	}
	f.at -= int64(n)
	return n, err
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

// List can fail at once or in its middle, or give what is not so.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		f, err := s.next(ctx, opList, storage.Key(prefix))
		path := s.Location().At(storage.Key(prefix))
		if f.name == "lost" {
			err = f.err(opList, path)
		}
		if err != nil {
			yield(storage.Object{}, err)
			return
		}
		list := s.Store.List(ctx, prefix, opts)
		end := -1 // no early end
		if f.name == "half" || f.name == "cut" {
			end = 0
			for range list {
				end++
			}
			end /= 2
		}
		if f.name == "truncate" {
			end = f.count
		}
		for obj, err := range list {
			switch {
			case err == nil && end == 0 && f.name == "half":
				yield(storage.Object{}, f.err(opList, path))
				return
			case err == nil && end == 0:
				return
			case err == nil && f.name == "drop" && s.chance(f.probability):
				continue
			}
			end--
			if !yield(obj, err) || f.name == "repeat" && err == nil && !yield(obj, nil) {
				return
			}
		}
	}
}

func (s *Store) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < p
}

// Delete can fail.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	f, err := s.next(ctx, opDelete, key)
	if err != nil {
		return err
	}
	return f.lost(opDelete, s.Location().At(key), s.Store.Delete(ctx, key))
}

// DeleteBatch can fail as a whole or for every other key.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	f, err := s.next(ctx, opBatch, keys...)
	if err != nil {
		return nil, err
	}
	var stay []storage.DeleteFailure
	if f.name == "some" {
		var gone []storage.Key
		for i, key := range keys {
			if i%2 == 0 {
				stay = append(stay, storage.DeleteFailure{Key: key, Err: f.err(opDelete, s.Location().At(key))})
			} else {
				gone = append(gone, key)
			}
		}
		keys = gone
	}
	failures, err := s.Store.DeleteBatch(ctx, keys)
	if err := f.lost(opBatch, string(s.Location()), err); err != nil {
		return nil, err
	}
	return append(stay, failures...), nil
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
	return t, nil
}
