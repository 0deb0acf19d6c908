package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage/lease"
)

// A run holds the lease of each table while it works on it, so that two runs whose
// tables overlap do not do the same work at the same time. What they write could not
// do harm: an image is its run's own, and store files are created if absent.

// claims are the leases of tables that are being worked on.
type claims struct {
	mu   sync.Mutex
	held map[hbackup.TableName]*lease.Lease
}

func (c *claims) set(t hbackup.TableName, l *lease.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[hbackup.TableName]*lease.Lease{}
	}
	c.held[t] = l
}

// of gives the lease of a table that is being worked on.
func (c *claims) of(t hbackup.TableName) *lease.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[t]
}

// claimTable takes the table's lease. The context that it gives ends with the reason
// when the lease is lost; free gives the lease back. A table that another run has
// is a busyTable.
func (r *run) claimTable(ctx context.Context, t hbackup.TableName) (kept context.Context, free func(), err error) {
	name := catalog.TableLease(t)
	l, err := lease.Acquire(ctx, r.store, name, r.owner(), r.opts.LeaseTTL)
	if hbackup.IsKind(err, hbackup.KindBusy) {
		return ctx, nil, r.busy(ctx, t, err)
	}
	if err != nil {
		return ctx, nil, err
	}
	r.claims.set(t, l)
	kept, stop := l.Keep(ctx)
	return kept, func() {
		stop()
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if err := l.Release(rctx); err != nil {
			r.opts.Log.Warn("a table's lease was not given back; it ends by itself", "table", t, "error", err)
		}
	}, nil
}

// busyTable says that another run works on the table.
type busyTable struct {
	error
	left time.Duration // until its lease ends, unless it is renewed
}

func (b busyTable) Unwrap() error { return b.error }

// busy makes the error for a table whose lease somebody else has.
func (r *run) busy(ctx context.Context, t hbackup.TableName, cause error) error {
	holder, _, err := lease.Read(ctx, r.store, catalog.TableLease(t))
	if err != nil {
		return err
	}
	now, err := r.store.ServerTime(ctx)
	if err != nil {
		return err
	}
	if !holder.HeldAt(now) { // given back in this moment
		return busyTable{cause, 0}
	}
	r.opts.Reporter.Stage(t, "waiting")
	r.opts.Log.Info("another run works on the table", "table", t, "holder", holder.Owner, "since", hbackup.FormatTime(holder.Acquired))
	return busyTable{hbackup.E("back up", t.String(), hbackup.KindBusy, fmt.Errorf("%s works on it since %s, and holds its lease until %s",
		holder.Owner, hbackup.FormatTime(holder.Acquired), hbackup.FormatTime(holder.Expires))).
		WithHint("the next backup takes the table; table_wait of the cluster says how long one waits for it"), holder.Expires.Sub(now)}
}

// busyTables gives those of the tables that another run works on, and when to look
// at them again.
func busyTables(numbers []int, errs []error) (busy []int, next time.Duration) {
	next = lookAgain
	for _, i := range numbers {
		var b busyTable
		if errors.As(errs[i], &b) {
			busy = append(busy, i)
			next = min(next, b.left+time.Second)
		}
	}
	return busy, next
}

// patience is how long all tables together are waited for, from the first look on.
type patience struct {
	most time.Duration
	from time.Time
}

func (p *patience) over() bool {
	if p.from.IsZero() {
		p.from = time.Now()
	}
	return time.Since(p.from) >= p.most
}

// bound cuts a wait to what is left.
func (p *patience) bound(d time.Duration) time.Duration {
	return min(d, max(p.most-time.Since(p.from), time.Millisecond))
}
