package s3

import (
	"slices"
	"sync"
	"time"
)

// peers remembers how long the latest parts of a store took, by which one that
// lags behind is told.
type peers struct {
	least time.Duration // no part is slow before

	mu   sync.Mutex
	last [16]float64 // seconds per byte, a ring
	n    int         // parts so far
}

const (
	fewestPeers = 4       // below that number nobody is slow
	muchSlower  = 4       // times the median
	smallPart   = 1 << 20 // in bytes; below it, it is not the bytes that take the time
)

func (p *peers) note(size int64, took time.Duration) {
	if size < smallPart {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[p.n%len(p.last)] = took.Seconds() / float64(size)
	p.n++
}

// patience gives how long a part of that size may take before it counts as slow;
// false when too little is known.
func (p *peers) patience(size int64) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := min(p.n, len(p.last))
	if known < fewestPeers || size < smallPart {
		return 0, false
	}
	sorted := slices.Clone(p.last[:known])
	slices.Sort(sorted)
	took := sorted[known/2] * float64(size) * muchSlower
	return max(time.Duration(took*float64(time.Second)), p.least), true
}

// timer gives a channel on which something comes when a part that begins now
// counts as slow, which may be never.
func (p *peers) timer(size int64) (after <-chan time.Time, stop func() bool) {
	d, ok := p.patience(size)
	if !ok {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(d)
	return t.C, t.Stop
}
