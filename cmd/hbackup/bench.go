package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/bench"
	"hbackup/config"
	"hbackup/internal/ui"
)

// committerBench measures committers on a location. The reporter is told which
// protocol is at work on what.
type committerBench interface {
	BenchCommitter(ctx context.Context, loc *config.Location, o bench.Options, report func(bench.Protocol, string)) ([]bench.Result, error)
}

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what a store makes of it",
		Subcommands: []*cli.Command{
			{
				Name:  "committer",
				Usage: "compare ways to commit on a location",
				Description: `
Writes files with each of the protocols and measures what it takes from the last
byte written until all of them are visible: seconds, requests, and bytes sent,
received and copied inside of the store. The protocols are Hadoop's
FileOutputCommitter (v1, v2), S3A's magic committer (magic), the manifest
committer (manifest) and the one that hbackup commits with (hbackup). Every
outcome is read back and compared.

Everything happens in a folder of a random name in the location, which is removed
at the end, also after an interruption. Nothing else is touched. The location
gets as many bytes and requests as the files come to, once for each protocol: on
a store of a provider both cost money. docs/committers.md says what is modelled.`,
				UsageText: `
hbackup bench committer --target s3 --files 1000 --size 64KiB
hbackup bench committer --target s3 --files 200 --size 1MiB --protocol v2,hbackup --latency 20ms -o json`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "target", Usage: "`NAME` of the location in the configuration (required)"},
					&cli.IntFlag{Name: "files", Usage: "`N` files for each protocol (required)"},
					&cli.StringFlag{Name: "size", Usage: "`SIZE` of each file, such as 64KiB (required)"},
					&cli.StringFlag{Name: "protocol", Usage: "`PROTOCOLS` to measure, separated by commas: " + protocolWords() + " (default: all)"},
					&cli.DurationFlag{Name: "latency", Usage: "`DURATION` that every request waits before it leaves, such as 20ms, as if the store were so far away"},
					&cli.IntFlag{Name: "tasks", Usage: fmt.Sprintf("`N` tasks that the files are spread over (default: %d)", benchTasks), Value: benchTasks},
					&cli.IntFlag{Name: "parallel", Usage: fmt.Sprintf("`N` tasks at work at the same time (default: %d)", benchTasks), Value: benchTasks},
				},
				Action: p.benchCommitter,
			},
		},
	}
}

// benchTasks is how many tasks there are, and at work at the same time.
const benchTasks = 16

func protocolWords() string {
	var words []string
	for _, p := range bench.Protocols {
		words = append(words, string(p))
	}
	return strings.Join(words, ", ")
}

func (p *program) benchCommitter(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	target, o, err := benchOptions(c)
	if err != nil {
		return err
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		loc, err := s.cfg.Location(target)
		if err != nil {
			return err
		}
		progress, stop := s.track()
		started := s.now()
		results, err := s.services.BenchCommitter(ctx, loc, o, func(p bench.Protocol, what string) { progress.Stage("", string(p)+": "+what) })
		stop()
		if wasInterrupted(ctx) {
			return errInterrupted
		}
		if err != nil {
			return err
		}
		return s.emit(newBenchDocument(loc, o, started, results))
	})
}

// benchOptions reads the flags.
func benchOptions(c *cli.Context) (config.LocationName, bench.Options, error) {
	var o bench.Options
	target, err := required(c, "target", "s3")
	if err != nil {
		return "", o, err
	}
	if !c.IsSet("files") {
		return "", o, bad(c, "the flag --files is missing").WithHint("for example --files 1000")
	}
	text, err := required(c, "size", "64KiB")
	if err != nil {
		return "", o, err
	}
	var size config.Size
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return "", o, bad(c, "--size: %w", err).WithHint("write it as 64KiB, 1MiB or as a number of bytes")
	}
	o = bench.Options{Files: c.Int("files"), Size: int64(size), Tasks: c.Int("tasks"), Parallel: c.Int("parallel"), Latency: c.Duration("latency")}
	if !c.IsSet("tasks") {
		o.Tasks = max(min(o.Tasks, o.Files), 1)
	}
	if o.Protocols, err = bench.ParseProtocols(c.String("protocol")); err != nil {
		return "", o, err
	}
	return config.LocationName(target), o, o.Validate()
}

// benchDocument is the result of bench committer.
type benchDocument struct {
	Location  string             `json:"location"`
	URL       string             `json:"url"`
	Started   string             `json:"started"`
	Files     int                `json:"files"`
	Size      int64              `json:"size"` // bytes of a file
	Tasks     int                `json:"tasks"`
	Parallel  int                `json:"parallel"`
	Latency   float64            `json:"latency_seconds"`
	Protocols []protocolDocument `json:"protocols"`
}

// protocolDocument is what one protocol took. Commit is from the last data byte
// written to everything visible: the commits of the tasks and that of the job.
type protocolDocument struct {
	Protocol    bench.Protocol `json:"protocol"`
	Unsupported string         `json:"unsupported,omitempty"` // why it cannot be had on the store
	Commit      *phaseDocument `json:"commit,omitempty"`
	// TimesOurs is how many times as long as ours the commit takes, when both were
	// measured.
	TimesOurs  float64        `json:"times_ours,omitempty"`
	Write      *phaseDocument `json:"write,omitempty"`
	TaskCommit *phaseDocument `json:"task_commit,omitempty"`
	JobCommit  *phaseDocument `json:"job_commit,omitempty"`
}

type phaseDocument struct {
	Seconds  float64          `json:"seconds"`
	Requests int64            `json:"requests"`
	ByKind   map[string]int64 `json:"requests_by_kind"`
	Up       int64            `json:"bytes_sent"`
	Down     int64            `json:"bytes_received"`
	Copied   int64            `json:"bytes_copied"` // inside of the store
}

func newPhase(p bench.Phase) *phaseDocument {
	t := p.Traffic
	return &phaseDocument{Seconds: p.Time.Seconds(), Requests: t.Total(), ByKind: t.Requests, Up: t.Up, Down: t.Down, Copied: t.Copied}
}

func newBenchDocument(loc *config.Location, o bench.Options, started time.Time, results []bench.Result) benchDocument {
	d := benchDocument{Location: string(loc.Name), URL: loc.URL.String(), Started: hbackup.FormatTime(started), Files: o.Files, Size: o.Size,
		Tasks: o.Tasks, Parallel: o.Parallel, Latency: o.Latency.Seconds(), Protocols: []protocolDocument{}}
	var ours time.Duration
	for _, r := range results {
		if r.Protocol == bench.Hbackup {
			ours = r.Commit().Time
		}
	}
	for _, r := range results {
		p := protocolDocument{Protocol: r.Protocol, Unsupported: r.Unsupported}
		if r.Unsupported == "" {
			p.Commit, p.Write, p.TaskCommit, p.JobCommit = newPhase(r.Commit()), newPhase(r.Write), newPhase(r.TaskCommit), newPhase(r.JobCommit)
			if ours > 0 {
				p.TimesOurs = r.Commit().Time.Seconds() / ours.Seconds()
			}
		}
		d.Protocols = append(d.Protocols, p)
	}
	return d
}

func (d benchDocument) schema() string { return "hbackup.bench.committer/1" }

func (d benchDocument) lines() ([]part, any) {
	var parts []part
	for _, p := range d.Protocols {
		parts = append(parts, part{"protocol", p})
	}
	return parts, struct {
		benchDocument
		Protocols *struct{} `json:"protocols,omitempty"` // hides the list that the lines have shown
	}{benchDocument: d}
}

func (d benchDocument) table(nowFunc) []*ui.Table {
	head := ui.NewTable(ui.Column{}, ui.Column{})
	head.Row("location", d.Location+", "+d.URL)
	head.Row("files", ui.Plural(d.Files, "file", "files")+" of "+ui.Bytes(d.Size)+", "+ui.Plural(d.Tasks, "task", "tasks")+", "+ui.Count(d.Parallel)+" at a time")
	if d.Latency > 0 {
		head.Row("latency", fmt.Sprintf("%g ms added to every request", d.Latency*1000))
	}
	costs := ui.NewTable(ui.Column{Name: "protocol"}, ui.Column{Name: "commit s", Align: ui.Right}, ui.Column{Name: "times ours", Align: ui.Right},
		ui.Column{Name: "requests", Align: ui.Right}, ui.Column{Name: "sent", Align: ui.Right}, ui.Column{Name: "received", Align: ui.Right},
		ui.Column{Name: "copied", Align: ui.Right}, ui.Column{Name: "write s", Align: ui.Right}, ui.Column{Name: "write requests", Align: ui.Right})
	kinds := ui.NewTable(ui.Column{Name: "protocol"}, ui.Column{Name: "requests of the commit, by kind"})
	for _, p := range d.Protocols {
		if p.Unsupported != "" {
			costs.Row(string(p.Protocol), "-", "-", "-", "-", "-", "-", "-", "-")
			kinds.Row(string(p.Protocol), "not measured: "+p.Unsupported)
			continue
		}
		times := "-"
		if p.TimesOurs > 0 {
			times = fmt.Sprintf("%.1f", p.TimesOurs)
		}
		costs.Row(string(p.Protocol), fmt.Sprintf("%.3f", p.Commit.Seconds), times, ui.Count(p.Commit.Requests), ui.Bytes(p.Commit.Up), ui.Bytes(p.Commit.Down),
			ui.Bytes(p.Commit.Copied), fmt.Sprintf("%.3f", p.Write.Seconds), ui.Count(p.Write.Requests))
		kinds.Row(string(p.Protocol), byKind(p.Commit.ByKind))
	}
	return []*ui.Table{head, costs, kinds}
}

// byKind lists requests, the most frequent first.
func byKind(requests map[string]int64) string {
	kinds := slices.Sorted(maps.Keys(requests))
	slices.SortStableFunc(kinds, func(a, b string) int { return int(requests[b] - requests[a]) })
	var words []string
	for _, k := range kinds {
		words = append(words, k+" "+ui.Count(requests[k]))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
