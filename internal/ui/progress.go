package ui

import (
	"sync"
	"time"
)

// Progress gathers what a running verb reports. It only counts; a Printer shows
// it. Calls may come from many goroutines.
type Progress struct {
	verb string
	now  func() time.Time

	mu       sync.Mutex
	started  time.Time
	stages   map[string]string // by item, as "ns:orders"; "" is the verb itself
	order    []string          // items as they were met
	last     string            // the item whose stage changed last
	expect   counts
	done     counts // reused ones included
	moved    int64  // bytes that really went through
	permille int    // highest share shown so far
	samples  []sample
	onStage  func(item, stage string)
}

type counts struct {
	files int
	bytes int64
}

// sample is how many bytes had moved at a moment, for the rate.
type sample struct {
	at    time.Time
	moved int64
}

// rateWindow is the stretch over which the rate is measured.
const rateWindow = 15 * time.Second

// NewProgress starts counting for a verb; now is its clock.
func NewProgress(verb string, now func() time.Time) *Progress {
	return &Progress{verb: verb, now: now, started: now(), stages: map[string]string{}}
}

// Stage says what is being done, with a table or (item "") with the whole.
func (p *Progress) Stage(item, stage string) {
	p.mu.Lock()
	if _, known := p.stages[item]; !known {
		p.order = append(p.order, item)
	}
	p.stages[item], p.last = stage, item
	hook := p.onStage
	p.mu.Unlock()
	if hook != nil {
		hook(item, stage)
	}
}

// Expect adds to what is to be done.
func (p *Progress) Expect(files int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect.files += files
	p.expect.bytes += bytes
}

// Done adds to what is done. Reused files were there already: they count as
// done, but not for the rate.
func (p *Progress) Done(files int, bytes int64, reused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.files += files
	p.done.bytes += bytes
	if !reused {
		p.moved += bytes
	}
}

// Snapshot is the state of a Progress at one moment.
type Snapshot struct {
	Verb        string
	Item        string // the one whose stage changed last
	Stage       string
	Items       int // tables met
	ItemsDone   int // whose stage is "done" or "failed"
	Files       int
	FilesDone   int
	Bytes       int64
	BytesDone   int64
	Permille    int           // of the bytes; at most 999, never less than in an earlier Snapshot
	Rate        int64         // bytes a second over the last seconds; 0 when unknown
	Elapsed     time.Duration // since the start
	Remaining   time.Duration // estimated; valid when HasEstimate
	HasEstimate bool
}

// Snapshot gives the state now.
func (p *Progress) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	s := Snapshot{
		Verb: p.verb, Item: p.last, Stage: p.stages[p.last],
		Files: p.expect.files, FilesDone: p.done.files, Bytes: p.expect.bytes, BytesDone: p.done.bytes,
		Elapsed: now.Sub(p.started),
	}
	for _, item := range p.order {
		if item == "" {
			continue
		}
		s.Items++
		if st := p.stages[item]; st == "done" || st == "failed" {
			s.ItemsDone++
		}
	}
	p.permille = max(p.permille, share(p.done, p.expect))
	s.Permille = p.permille
	s.Rate = p.rate(now)
	if left := p.expect.bytes - p.done.bytes; s.Rate > 0 && left > 0 {
		seconds := float64(left) / float64(s.Rate)
		if seconds < 1e6 {
			s.Remaining, s.HasEstimate = time.Duration(seconds*float64(time.Second)), true
		}
	}
	return s
}

// share is done of expect in thousandths. It never says all: only the commit of
// the verb does, and then there is a result to show instead.
func share(done, expect counts) int {
	switch {
	case expect.bytes > 0:
		return clamp(float64(done.bytes) / float64(expect.bytes))
	case expect.files > 0:
		return clamp(float64(done.files) / float64(expect.files))
	}
	return 0
}

func clamp(f float64) int { return max(0, min(999, int(f*1000))) }

// rate takes a sample and compares it with the oldest one inside the window.
func (p *Progress) rate(now time.Time) int64 {
	p.samples = append(p.samples, sample{now, p.moved})
	for len(p.samples) > 2 && now.Sub(p.samples[1].at) >= rateWindow {
		p.samples = p.samples[1:]
	}
	first := p.samples[0]
	took := now.Sub(first.at)
	if took <= 0 {
		return 0
	}
	return int64(float64(p.moved-first.moved) / took.Seconds())
}
