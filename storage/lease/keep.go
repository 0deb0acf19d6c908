package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Holder gives the generation that this process made last.
func (l *Lease) Holder() Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// Check gives nil while the lease is surely held, and ErrLost or the reason
// otherwise. It asks nobody.
func (l *Lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil && l.since(l.asked) >= l.surely() {
		l.over = l.lost(fmt.Errorf("it was not renewed in time and expires at %s", hbackup.FormatTime(l.current.Expires)))
	}
	return l.over
}

// surely is how long after the question the lease is held whatever the store's
// clock rounds away, which is a second at each of two looks at most.
func (l *Lease) surely() time.Duration { return l.ttl - min(3*time.Second, l.ttl/2) }

// left is how long the lease is surely held from now.
func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.surely() - l.since(l.asked)
}

// Confirm asks the store whether somebody else has taken the lease, and gives
// ErrLost if so. Check cannot know when all clocks of the machine stood still, as
// they do while it is suspended.
func (l *Lease) Confirm(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	if err := l.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(storage.Urgent(ctx), opWindow)
	defer cancel()
	last, err := newest(ctx, l.store, l.name)
	if err != nil {
		return err
	}
	current := l.Holder()
	if last <= current.Generation {
		return l.Check()
	}
	by, err := readGeneration(ctx, l.store, l.name, last)
	switch {
	case err != nil:
		return err
	case by.record.Token != current.record.Token:
		return l.overtaken(ctx, last, nil)
	}
	return l.Check() // a renewal of ours whose answer was lost
}

// Renew extends the lease to its full time from now. An error with ErrLost is
// final; after any other the lease is held as before and Renew may be tried
// again.
func (l *Lease) Renew(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	if err := l.Check(); err != nil {
		return err
	}
	ctx = storage.Urgent(ctx)
	if err := l.next(ctx, false); err != nil {
		return err
	}
	l.clean(ctx)
	return l.Check()
}

// next makes the generation after the current one.
func (l *Lease) next(ctx context.Context, released bool) error {
	ctx, cancel := context.WithTimeout(ctx, opWindow)
	defer cancel()
	q, err := l.ask(ctx)
	if err != nil {
		return err
	}
	current := l.Holder()
	r := current.record
	r.Released = released
	err = l.create(ctx, q, current.Generation+1, r)
	if hbackup.IsKind(err, hbackup.KindExists) {
		return l.overtaken(ctx, current.Generation+1, err)
	}
	return err
}

// overtaken says who has the lease now.
func (l *Lease) overtaken(ctx context.Context, generation int64, err error) error {
	if by, readErr := readGeneration(ctx, l.store, l.name, generation); readErr == nil {
		err = fmt.Errorf("%s took it at %s", by.Owner, hbackup.FormatTime(by.record.At))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.lost(err)
	return l.over
}

// Keep renews the lease in the background, every third of its time, until stop
// is called. When the lease is lost the context that it gives is cancelled, with
// the reason as its cause. Stop waits for the end of the background work; it
// does not release the lease.
func (l *Lease) Keep(ctx context.Context) (kept context.Context, stop func()) {
	kept, cancel := context.WithCancelCause(ctx)
	run, end := context.WithCancel(ctx)
	// A request that hangs must not delay the verdict, so the deadline has its
	// own timer.
	watch := time.AfterFunc(l.left(), func() {
		if err := l.Check(); err != nil {
			cancel(err)
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.keep(run, watch); err != nil {
			cancel(err)
		}
	}()
	return kept, func() {
		end()
		<-done
		watch.Stop()
		cancel(context.Canceled)
	}
}

// keep gives the reason of a loss, or nil when ctx is over.
func (l *Lease) keep(ctx context.Context, watch *time.Timer) error {
	wait := l.ttl / 3
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		try, cancel := context.WithTimeout(ctx, l.left())
		err := l.Renew(try)
		cancel()
		switch {
		case err == nil:
			watch.Reset(l.left())
			wait = l.ttl / 3
		case errors.Is(err, ErrLost):
			return err
		case l.Check() != nil:
			return l.lost(err)
		default:
			wait = l.ttl / 20
		}
	}
}

// Release gives the lease back, so that others need not wait for its expiry.
// From the call on it does not count as held, whatever comes of it: a release
// may have been done although its answer was lost. After an error Release may
// be called again. It gives ErrLost when the lease was lost before; when it is
// released already it does nothing.
func (l *Lease) Release(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	if l.Holder().Released {
		return nil
	}
	if err := l.Check(); err != nil && !errors.Is(err, errReleased) {
		return err
	}
	l.mu.Lock()
	l.over = l.lost(errReleased)
	l.mu.Unlock()
	ctx = storage.Urgent(ctx)
	if err := l.next(ctx, true); err != nil {
		return err
	}
	l.clean(ctx)
	return nil
}

// clean deletes, as well as it can, generations that are older than keepFor.
// All before such a one are older still.
func (l *Lease) clean(ctx context.Context) {
	l.mu.Lock()
	upTo, rest := int64(0), l.doomed
	for len(rest) > 0 && l.current.record.At.Sub(rest[0].at) > keepFor {
		upTo, rest = rest[0].generation, rest[1:]
	}
	l.mu.Unlock()
	if upTo == 0 || deleteUpTo(ctx, l.store, l.name, upTo) != nil {
		return // the next renewal tries again
	}
	l.mu.Lock()
	l.doomed = rest
	l.mu.Unlock()
}

func deleteUpTo(ctx context.Context, s storage.Store, name string, generation int64) error {
	var keys []storage.Key
	for obj, err := range s.List(ctx, folder(name), storage.ListOptions{}) {
		if err != nil {
			return err
		}
		n, ok := generationOf(name, obj.Key)
		if ok && n > generation {
			break
		}
		if ok {
			keys = append(keys, obj.Key)
		}
	}
	failures, err := s.DeleteBatch(ctx, keys)
	if err == nil && len(failures) > 0 {
		err = failures[0].Err
	}
	return err
}
