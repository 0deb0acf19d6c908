package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"hbackup"
	"hbackup/engine"
)

// FolderPrefix is what the name of every folder that the benchmark makes begins with.
const FolderPrefix = "hbackup-bench-"

// NewFolder gives the name of a folder that nobody else has.
func NewFolder() string { return FolderPrefix + strings.ToLower(rand.Text()[:16]) }

// Phase is a part of a run.
type Phase struct {
	Time    time.Duration
	Traffic Traffic
}

// Result is what a protocol took.
type Result struct {
	Protocol Protocol
	// Unsupported says why the protocol cannot be had on the store; then there are
	// no figures.
	Unsupported string
	Write       Phase // until all tasks have closed their files
	TaskCommit  Phase
	JobCommit   Phase
}

// Commit is everything from the last data byte to everything visible.
func (r Result) Commit() Phase {
	return Phase{r.TaskCommit.Time + r.JobCommit.Time, r.TaskCommit.Traffic.Add(r.JobCommit.Traffic)}
}

// protocol is one way to commit, for one job in a folder of its own.
type protocol interface {
	setup(context.Context) error
	write(ctx context.Context, task int) error
	commitTask(ctx context.Context, task int) error
	commitJob(context.Context) error
	// verify fails unless every file is visible with its bytes and nothing else is
	// there.
	verify(context.Context) error
}

// clearTime bounds the clearing away after an interruption.
const clearTime = 10 * time.Minute

// Run measures the chosen protocols one after the other and clears the target,
// also when it is interrupted. The reporter, which may be nil, is told which
// protocol is at work on what.
func Run(ctx context.Context, target Target, o Options, report func(Protocol, string)) (results []Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if report == nil {
		report = func(Protocol, string) {}
	}
	defer func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
		cerr := target.Meter().unhurried(func() error { return target.Clear(cctx) })
		if cerr != nil {
			cerr = hbackup.E("clear", string(target.Store().Location()), hbackup.KindOther, cerr).
				WithHint("remove what is left below it yourself; nothing else uses it")
		}
		err = errors.Join(err, cerr)
	}()
	j := newJob(o)
	for _, name := range o.Protocols {
		p, why := newProtocol(name, target, j)
		if why != "" {
			results = append(results, Result{Protocol: name, Unsupported: why})
			continue
		}
		r, err := measure(ctx, name, target, p, j, func(what string) { report(name, what) })
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// newProtocol gives the protocol, or why it cannot be had.
func newProtocol(name Protocol, t Target, j *job) (protocol, string) {
	dir := string(name)
	switch name {
	case V1, V2:
		return &fileOutput{job: j, target: t, fs: t.FS(name), out: dir, algorithm: name}, ""
	case Magic:
		if t.Uploads() == nil {
			return nil, "the store has no uploads that could be held open"
		}
		return &magic{job: j, target: t, fs: t.FS(name), uploads: t.Uploads(), out: dir}, ""
	case Manifest:
		return &manifest{job: j, target: t, fs: t.FS(name), out: dir}, ""
	}
	return newDirect(j, t, dir), ""
}

func measure(ctx context.Context, name Protocol, t Target, p protocol, j *job, report func(string)) (Result, error) {
	r := Result{Protocol: name}
	perTask := func(do func(context.Context, int) error) func() error {
		return func() error { return engine.Local(ctx, j.Parallel, engine.Each(j.tasks()), do) }
	}
	if err := t.Meter().unhurried(func() error { return p.setup(ctx) }); err != nil {
		return r, err
	}
	var err error
	report("write")
	if r.Write, err = phase(t.Meter(), perTask(p.write)); err != nil {
		return r, err
	}
	report("commit tasks")
	if r.TaskCommit, err = phase(t.Meter(), perTask(p.commitTask)); err != nil {
		return r, err
	}
	report("commit job")
	if r.JobCommit, err = phase(t.Meter(), func() error { return p.commitJob(ctx) }); err != nil {
		return r, err
	}
	report("verify")
	return r, t.Meter().unhurried(func() error { return p.verify(ctx) })
}

func phase(m *Meter, do func() error) (Phase, error) {
	before, start := m.Traffic(), time.Now()
	err := do()
	return Phase{time.Since(start), m.Traffic().sub(before)}, err
}
