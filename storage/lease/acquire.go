package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"hbackup"
	"hbackup/storage"
)

// Lease is a claim of this process. Its methods may be called from many
// goroutines.
type Lease struct {
	store storage.Store
	name  string
	ttl   time.Duration
	now   func() time.Time // this host's clock; time.Now but in tests

	change sync.Mutex // held over Renew and Release, so that they come one after another

	mu      sync.Mutex // guards what follows, never over a request
	current Holder
	asked   time.Time // own clock, before the store was asked for the time of current
	over    error     // why it is not held any more
	doomed  []mark    // generations of this lease that cannot be deleted yet
}

// mark is a generation and the store's time when it was made.
type mark struct {
	generation int64
	at         time.Time
}

// Acquire takes the lease for the owner, a text that tells people who it is
// (host, process, run). KindBusy means that somebody else holds it, and says who
// and until when. A holder of the same owner name counts as somebody else: a
// process that was killed waits for its own expiry.
func Acquire(ctx context.Context, s storage.Store, name, owner string, ttl time.Duration) (*Lease, error) {
	return acquire(ctx, s, name, owner, ttl, time.Now)
}

// acquire is Acquire by a host with that clock.
func acquire(ctx context.Context, s storage.Store, name, owner string, ttl time.Duration, now func() time.Time) (*Lease, error) {
	if err := checkName(s, name); err != nil {
		return nil, err
	}
	path := s.Location().At(storage.Key(folder(name)))
	if ttl < MinTTL || ttl > MaxTTL {
		return nil, hbackup.Errorf("acquire lease", path, hbackup.KindUsage, "the lease time %s is not between %s and %s", ttl, MinTTL, MaxTTL)
	}
	l := &Lease{store: s, name: name, ttl: ttl, now: now}
	token := rand.Text()
	ctx, cancel := context.WithTimeout(storage.Urgent(ctx), opWindow)
	defer cancel()
	for range 100 {
		q, err := l.ask(ctx)
		if err != nil {
			return nil, err
		}
		last, _, err := Read(ctx, s, name)
		if err != nil {
			return nil, err
		}
		won, err := l.climb(ctx, q, last, record{Owner: owner, Token: token, Acquired: q.storeTime})
		if err != nil {
			return nil, err
		}
		if won {
			return l, nil
		}
	}
	return nil, hbackup.Errorf("acquire lease", path, hbackup.KindBusy, "it changes hands all the time")
}

// climb tries to make the generation after last. When somebody else was faster
// it reads what they made and goes on from there, by name and not by listing,
// as a listing may lag behind. It gives false when the ground is lost and the
// caller should look anew.
func (l *Lease) climb(ctx context.Context, q question, last Holder, r record) (bool, error) {
	for {
		if last.HeldAt(q.storeTime) && last.record.Token != r.Token {
			return false, busy(l.store, last, q.storeTime)
		}
		next := last.Generation + 1
		err := l.create(ctx, q, next, r)
		if err == nil {
			return l.confirm(ctx, next, last)
		}
		if !hbackup.IsKind(err, hbackup.KindExists) {
			return false, err
		}
		last, err = readGeneration(ctx, l.store, l.name, next)
		switch {
		case hbackup.IsKind(err, hbackup.KindNotFound):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// confirm looks once more whether the generation that was made is the newest.
// It can fail to be only when the first listing was older than keepFor, which
// no store should do; then nothing was won.
func (l *Lease) confirm(ctx context.Context, generation int64, before Holder) (bool, error) {
	last, err := newest(ctx, l.store, l.name)
	if err != nil {
		return false, err
	}
	if last > generation {
		return false, nil
	}
	if before.Generation > 0 {
		l.doomed = append([]mark{{before.Generation, before.record.At}}, l.doomed...)
	}
	l.clean(ctx)
	return true, nil
}

// question is one look at the store's clock.
type question struct {
	asked     time.Time // own clock, before
	storeTime time.Time
}

func (l *Lease) ask(ctx context.Context) (question, error) {
	asked := l.now()
	t, err := l.store.ServerTime(ctx)
	return question{asked, t.UTC()}, err
}

// create makes a generation and takes it over as the current one. A create that
// reports KindExists but turns out to be our own, because an earlier answer was
// lost, is a success.
func (l *Lease) create(ctx context.Context, q question, generation int64, r record) error {
	r.Version, r.At, r.Expires = version, q.storeTime, q.storeTime.Add(l.ttl)
	if r.Released {
		r.Expires = q.storeTime
	}
	err := l.publish(ctx, generation, r)
	if hbackup.IsKind(err, hbackup.KindExists) {
		there, readErr := readGeneration(ctx, l.store, l.name, generation)
		if readErr != nil || there.record.Token != r.Token {
			return err
		}
		l.adopt(there, q.asked.Add(there.record.At.Sub(q.storeTime)))
		if there.Released != r.Released { // a renewal of ours that was given up, before this release
			return l.create(ctx, q, generation+1, r)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if took := l.since(q.asked); took > opWindow {
		return hbackup.Errorf("acquire lease", l.path(), hbackup.KindTimeout, "the store took %s", hbackup.FormatDuration(took)).
			WithHint("the lease frees itself at %s", hbackup.FormatTime(r.Expires))
	}
	l.adopt(r.holder(l.name, generation), q.asked)
	return nil
}

// publish writes a generation, again if the answer was lost: a lease that was
// made and not noticed would keep everybody waiting for its expiry.
func (l *Lease) publish(ctx context.Context, generation int64, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err := storage.PutBytes(ctx, l.store, keyOf(l.name, generation), data, true)
		if err == nil || !hbackup.Retryable(err) || try == 3 || ctx.Err() != nil {
			return err
		}
	}
}

func (l *Lease) adopt(h Holder, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Generation > 0 {
		l.doomed = append(l.doomed, mark{l.current.Generation, l.current.record.At})
	}
	l.current, l.asked = h, asked
}

func (l *Lease) path() string { return l.store.Location().At(storage.Key(folder(l.name))) }

func busy(s storage.Store, h Holder, now time.Time) error {
	return hbackup.E("acquire lease", s.Location().At(storage.Key(folder(h.Name))), hbackup.KindBusy,
		fmt.Errorf("%s holds it until %s, for another %s", h.Owner, hbackup.FormatTime(h.Expires), hbackup.FormatDuration(h.Expires.Sub(now)))).
		WithHint("wait until that work is done; the lease of a process that died frees itself when it expires")
}

// since gives the larger of what the monotonic and the wall clock say, because
// the first stands still while a machine sleeps.
func (l *Lease) since(t time.Time) time.Duration {
	now := l.now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// lost makes the error that ends a lease.
func (l *Lease) lost(cause error) error {
	kind := hbackup.KindOf(cause)
	if kind == hbackup.KindOther || kind == hbackup.KindExists {
		kind = hbackup.KindBusy
	}
	return hbackup.E("keep lease", l.path(), kind, fmt.Errorf("%w: %w", ErrLost, cause))
}
