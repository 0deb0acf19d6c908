package ui

import (
	"fmt"
	"io"
	"time"

	"hbackup"
)

// Intervals between two showings of the progress.
const (
	redrawEvery = 250 * time.Millisecond // of the status lines on a terminal
	lineEvery   = time.Minute            // of lines on anything else
	eventEvery  = 5 * time.Second        // of progress events in a JSON stream
)

// Printer shows a Progress until it is stopped.
type Printer struct {
	progress *Progress
	show     func()
	last     func() // when it is stopped
	stop     chan struct{}
	ended    chan struct{}
}

// ShowOn draws the progress on standard error: status lines on a terminal, for the
// whole and for each table at work, a line a minute otherwise.
func ShowOn(c *Console, p *Progress) *Printer {
	if c.Terminal() {
		show := func() { c.Status(p.Snapshot().Lines(c.Room())...) }
		return start(p, redrawEvery, show, func() { c.Status() })
	}
	show := func() { fmt.Fprintln(c, p.Snapshot().Line()) }
	return start(p, lineEvery, show, func() {})
}

// event is a line about progress in a JSON stream. Sizes are in bytes, times in
// seconds.
type event struct {
	At        string  `json:"at"`
	Item      string  `json:"table,omitempty"`
	Stage     string  `json:"stage,omitempty"`
	Files     int     `json:"files,omitempty"`
	FilesDone int     `json:"files_done,omitempty"`
	Reused    int     `json:"files_reused,omitempty"` // of those done: were there before
	Bytes     int64   `json:"bytes,omitempty"`
	BytesDone int64   `json:"bytes_done,omitempty"`
	BytesUsed int64   `json:"bytes_reused,omitempty"`
	Share     float64 `json:"share,omitempty"` // of the bytes, from 0 to 0.999
	Rate      int64   `json:"bytes_per_second,omitempty"`
	Elapsed   float64 `json:"elapsed_seconds,omitempty"`
	Remaining float64 `json:"remaining_seconds,omitempty"`
}

// ShowAsEvents writes a "stage" line whenever a stage begins, with what was done for the
// table when that was its last one, and a "progress" line every few seconds. Writes to w must be whole lines and may come from many
// goroutines: see Lines.
func ShowAsEvents(w io.Writer, p *Progress) *Printer {
	p.mu.Lock()
	p.onStage = func(i item) {
		e := event{At: hbackup.FormatTime(p.now()), Item: i.name, Stage: i.stage}
		if i.ended() {
			e.Files, e.FilesDone, e.Reused = i.expect.files, i.done.files, i.reused.files
			e.Bytes, e.BytesDone, e.BytesUsed = i.expect.bytes, i.done.bytes, i.reused.bytes
		}
		_ = WriteLine(w, "stage", "", e)
	}
	p.mu.Unlock()
	show := func() {
		s := p.Snapshot()
		_ = WriteLine(w, "progress", "", event{
			At: hbackup.FormatTime(p.now()), Item: s.Item, Stage: s.Stage, Files: s.Files, FilesDone: s.FilesDone, Reused: s.FilesReused,
			Bytes: s.Bytes, BytesDone: s.BytesDone, BytesUsed: s.BytesReused, Share: float64(s.Permille) / 1000, Rate: s.Rate,
			Elapsed: s.Elapsed.Round(time.Millisecond).Seconds(), Remaining: s.Remaining.Round(time.Millisecond).Seconds(),
		})
	}
	return start(p, eventEvery, show, func() {})
}

func start(p *Progress, every time.Duration, show, last func()) *Printer {
	pr := &Printer{progress: p, show: show, last: last, stop: make(chan struct{}), ended: make(chan struct{})}
	go pr.loop(every)
	return pr
}

func (pr *Printer) loop(every time.Duration) {
	defer close(pr.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-pr.stop:
			return
		case <-tick.C:
			pr.show()
		}
	}
}

// Stop ends the showing and takes the status lines away. It is called once.
func (pr *Printer) Stop() {
	close(pr.stop)
	<-pr.ended
	pr.last()
}
