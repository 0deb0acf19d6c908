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
	items    map[string]*item // by name, as "ns:orders"; "" is the verb itself
	order    []*item          // as they were met
	last     *item            // the one whose stage changed last; nil: none yet
	work                      // of all items together
	moved    int64            // bytes that really went through
	permille int              // highest share shown so far
	samples  []sample
	onStage  func(item) // called with a copy
}

// item is a table, or the verb itself.
type item struct {
	name, stage string
	work
}

func (i *item) ended() bool { return i.stage == StageDone || i.stage == StageFailed }

// The stages that an item ends with.
const (
	StageDone   = "done"
	StageFailed = "failed"
)

// work is how far something is.
type work struct {
	expect counts
	done   counts // reused ones included
	reused counts // were there already
}

type counts struct {
	files int
	bytes int64
}

func (c *counts) add(files int, bytes int64) {
	c.files += files
	c.bytes += bytes
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
	return &Progress{verb: verb, now: now, started: now(), items: map[string]*item{}}
}

// Stage says what is being done, with a table or (name "") with the whole.
func (p *Progress) Stage(name, stage string) {
	p.mu.Lock()
	i := p.item(name)
	i.stage, p.last = stage, i
	hook, now := p.onStage, *i
	p.mu.Unlock()
	if hook != nil {
		hook(now)
	}
}

// item gives the item of a name, which is new if need be.
func (p *Progress) item(name string) *item {
	i := p.items[name]
	if i == nil {
		i = &item{name: name}
		p.items[name] = i
		p.order = append(p.order, i)
	}
	return i
}

// Expect adds to what is to be done for an item.
func (p *Progress) Expect(name string, files int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.item(name).expect.add(files, bytes)
	p.expect.add(files, bytes)
}

// Done adds to what is done. Reused files were there already: they count as
// done, but not for the rate.
func (p *Progress) Done(name string, files int, bytes int64, reused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range []*work{&p.item(name).work, &p.work} {
		w.done.add(files, bytes)
		if reused {
			w.reused.add(files, bytes)
		}
	}
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
	ItemsDone   int // that are done or have failed
	Failed      []string
	AtWork      []ItemSnapshot // tables that are neither
	Files       int
	FilesDone   int
	FilesReused int // of those done: were there already
	Bytes       int64
	BytesDone   int64
	BytesReused int64
	Permille    int           // of the bytes; at most 999, never less than in an earlier Snapshot
	Rate        int64         // bytes a second over the last seconds; 0 when unknown
	Elapsed     time.Duration // since the start
	Remaining   time.Duration // estimated; valid when HasEstimate
	HasEstimate bool
}

// ItemSnapshot is the state of one table.
type ItemSnapshot struct {
	Name, Stage string
	work
}

// Snapshot gives the state now.
func (p *Progress) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	s := Snapshot{
		Verb:  p.verb,
		Files: p.expect.files, FilesDone: p.done.files, FilesReused: p.reused.files,
		Bytes: p.expect.bytes, BytesDone: p.done.bytes, BytesReused: p.reused.bytes,
		Elapsed: now.Sub(p.started),
	}
	if p.last != nil {
		s.Item, s.Stage = p.last.name, p.last.stage
	}
	for _, i := range p.order {
		if i.name == "" {
			continue
		}
		s.Items++
		switch {
		case !i.ended():
			s.AtWork = append(s.AtWork, ItemSnapshot{i.name, i.stage, i.work})
			continue
		case i.stage == StageFailed:
			s.Failed = append(s.Failed, i.name)
		}
		s.ItemsDone++
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
