package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/check"
	"hbackup/committer"
	"hbackup/config"
	"hbackup/internal/ui"
)

// targetValidator tries a location out.
type targetValidator interface {
	ValidateTarget(context.Context, *config.Location, check.TargetOptions) (check.TargetReport, error)
}

func (p *program) targetCommand() *cli.Command {
	return &cli.Command{
		Name:  "target",
		Usage: "try out where backups are to be kept",
		Subcommands: []*cli.Command{{
			Name:      "validate",
			Usage:     "try out whether backups are safe in a location",
			ArgsUsage: "NAME",
			Description: `
Runs the conformance suite, the same that hbackup's own tests run, in the location
NAME of the configuration, looks at the rights and at the store's settings, and
says what the store can and cannot do and how images would be committed there.

It writes below a random folder of the location, which it clears away at the end,
also after Ctrl-C. A location that holds other data is refused. No cluster is
reached. It takes a minute at most on a store that is not slow, with --full
several.

Each item is OK, NO (the store cannot do it, and hbackup does without), WARNING
(backups are safe, but look at it) or FAILED. The exit code is 0 when nothing has
failed: then backups are safe there. With 12 rights are missing, with 15 the store
or a setting of it is not safe.`,
			UsageText: `
hbackup target validate main
hbackup target validate main --full -o json`,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "full", Usage: "run every case, with large objects and many keys"},
				&cli.StringFlag{Name: "longest", Usage: "`DURATION` of the longest backup that is to be expected, as 36h or 3d; rules of the store that act sooner fail (default: 24h)"},
				initFlag("try the location although it holds other data, and make it hbackup's if it is safe"),
			},
			Action: p.validateTarget,
		}},
	}
}

func (p *program) validateTarget(c *cli.Context) error {
	if err := p.arguments(c, "NAME"); err != nil {
		return err
	}
	name := config.LocationName(c.Args().First())
	if err := name.Validate(); err != nil {
		return bad(c, "%w", err)
	}
	longest := check.DefaultLongest
	if c.IsSet("longest") {
		var err error
		if longest, err = config.ParseDuration(c.String("longest")); err != nil || longest <= 0 {
			return bad(c, "--longest: %s is not a duration", quoteOdd(c.String("longest"))).WithHint("for example --longest 36h, or 3d")
		}
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		loc, err := s.cfg.Location(name)
		if err != nil {
			return err
		}
		progress, stop := s.track()
		count := trialCount{progress: progress}
		progress.Stage("", "look")
		report, err := s.services.ValidateTarget(ctx, loc, check.TargetOptions{
			Committer: committer.Protocol(loc.Committer),
			Full:      c.Bool("full"), Longest: longest, Init: c.Bool("init"), Writer: writer(),
			Expect: count.expect, Done: count.done,
		})
		stop()
		if err != nil {
			if report.Left != "" {
				s.log.Warn(report.Left)
			}
			return err
		}
		d := newTargetDocument(s, loc, report, c.Bool("full"))
		if err := s.emit(d); err != nil {
			return err
		}
		return d.err()
	})
}

// trialCount shows how many trials are over.
type trialCount struct {
	progress  *ui.Progress
	mu        sync.Mutex
	all, over int
}

func (t *trialCount) expect(n int) { t.add(n, 0) }
func (t *trialCount) done(n int)   { t.add(0, n) }

func (t *trialCount) add(all, over int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all, t.over = t.all+all, t.over+over
	t.progress.Stage("", fmt.Sprintf("trial %d of %d", min(t.over+1, t.all), t.all))
}

// targetDocument is the result of target validate.
type targetDocument struct {
	Location  string          `json:"location"` // name in the configuration
	URL       string          `json:"url"`
	Safe      bool            `json:"safe"`
	Status    check.Status    `json:"status"` // the gravest of the items
	Full      bool            `json:"full"`   // every case of the suite was run
	Committer check.Committer `json:"committer"`
	Items     []targetItem    `json:"items"`
}

type targetItem struct {
	Name   string       `json:"name"`
	Status check.Status `json:"status"`
	Detail string       `json:"detail"`
	Hint   string       `json:"hint,omitempty"`
	kind   hbackup.Kind
}

func newTargetDocument(s *session, loc *config.Location, r check.TargetReport, full bool) targetDocument {
	worst, _ := check.Worst(r.Items)
	d := targetDocument{Location: string(loc.Name), URL: loc.URL.String(), Safe: worst != check.Failed, Status: worst, Full: full,
		Committer: r.Committer, Items: []targetItem{}}
	for _, i := range r.Items {
		d.Items = append(d.Items, targetItem{i.Name, i.Status, s.plain(i.Detail), s.plain(i.Hint), hbackup.KindOf(i.Err)})
	}
	return d
}

// err gives the outcome. What makes the place unsafe outweighs rights that are
// missing, and these what else went wrong.
func (d targetDocument) err() error {
	var failed []string
	kind := hbackup.KindOther
	for _, i := range d.Items {
		if i.Status != check.Failed {
			continue
		}
		failed = append(failed, i.Name)
		if kind == hbackup.KindOther || i.kind == hbackup.KindRefused || i.kind == hbackup.KindDenied && kind != hbackup.KindRefused {
			kind = i.kind
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return hbackup.Errorf("target validate", d.URL, kind, "failed: %s", strings.Join(failed, ", ")).
		WithHint("do not keep backups there before this is mended; each item above says how")
}

func (d targetDocument) schema() string { return "hbackup.target.validate/1" }

func (d targetDocument) lines() ([]part, any) {
	var parts []part
	for _, i := range d.Items {
		parts = append(parts, part{"item", i})
	}
	d.Items = nil
	return parts, struct {
		targetDocument
		Items int `json:"items"` // how many there were
	}{d, len(parts)}
}

func (d targetDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{Name: "item"}, ui.Column{Name: "status"}, ui.Column{Name: "detail"})
	for _, i := range d.Items {
		t.Row(i.Name, string(i.Status), i.Detail)
		if i.Hint != "" {
			t.Row("", "", "hint: "+i.Hint)
		}
	}
	end := ui.NewTable(ui.Column{}, ui.Column{})
	end.Row("location", d.Location+", "+d.URL)
	end.Row("committer", string(d.Committer.Name)+": "+d.Committer.Why)
	verdict := "backups are safe there"
	if !d.Safe {
		verdict = "backups are NOT safe there"
	}
	end.Row("verdict", verdict)
	return []*ui.Table{t, end}
}
