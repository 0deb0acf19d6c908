package main

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/internal/nearest"
	"hbackup/internal/ui"
)

// historyReader reads all runs of a cluster from its locations.
type historyReader interface {
	History(context.Context, *config.Cluster) (catalog.History, error)
}

// states are the words of --state.
var states = []string{string(catalog.StateRunning), string(catalog.StateComplete), string(catalog.StatePartial), string(catalog.StateFailed)}

func (p *program) listCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list the backups in all locations of a cluster",
		Description: `
Shows every backup of the cluster's target and history, oldest first: also those
that run, failed or are partial. The locations themselves are asked which there
are; the index on this machine only saves reading the records again, and nothing
is lost with it. When a location cannot be read, the others are shown and
the exit code is 3.`,
		UsageText: `
hbackup list
hbackup list --cluster prod --table ns:orders --state complete
hbackup list --since 2026-11-01T00:00:00Z -o json`,
		Flags: []cli.Flag{
			clusterFlag("`NAME` of the cluster (default: all)"),
			&cli.StringFlag{Name: "table", Usage: "only backups of `TABLE`"},
			&cli.StringFlag{Name: "state", Usage: "only backups in `STATE`: " + strings.Join(states, ", ") + "; several separated by commas"},
			&cli.StringFlag{Name: "since", Usage: "only backups that started at `TIME` or later (RFC 3339 with zone)"},
			&cli.StringFlag{Name: "until", Usage: "only backups that started before `TIME` (RFC 3339 with zone)"},
		},
		Action: p.list,
	}
}

// listFilter is what list is asked for.
type listFilter struct {
	table        hbackup.TableName
	states       []string
	since, until time.Time
}

func (p *program) list(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	name, err := clusterName(c, "cluster")
	if err != nil {
		return err
	}
	f, err := parseListFilter(c)
	if err != nil {
		return err
	}
	// A list is made once and written; there is little to collect on the way.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	return p.withSession(c, func(ctx context.Context, s *session) error {
		clusters, err := s.clusters(name)
		if err != nil {
			return err
		}
		d := listDocument{}
		for _, cl := range clusters {
			h, err := s.services.History(ctx, cl)
			if err != nil {
				return err
			}
			d.add(s, cl, h, f)
		}
		if len(clusters) > 1 {
			d.sort()
		}
		if len(d.rows) == 0 && len(d.Unreachable) > 0 {
			return d.err() // an empty list would look like an answer
		}
		if s.format != formatTable {
			d.describe()
		}
		if err := s.emit(d); err != nil {
			return err
		}
		return d.err()
	})
}

func parseListFilter(c *cli.Context) (f listFilter, err error) {
	if f.table, err = tableName(c, "table"); err != nil {
		return f, err
	}
	if c.IsSet("state") {
		for word := range strings.SplitSeq(c.String("state"), ",") {
			word = strings.TrimSpace(word)
			if !slices.Contains(states, word) {
				e := bad(c, "--state: %s is not one of %s", quoteOdd(word), strings.Join(states, ", "))
				if near := nearest.To(word, states); near != "" {
					return f, e.WithHint("did you mean %s?", near)
				}
				return f, e
			}
			f.states = append(f.states, word)
		}
	}
	if f.since, err = moment(c, "since"); err != nil {
		return f, err
	}
	if f.until, err = moment(c, "until"); err != nil {
		return f, err
	}
	if !f.until.IsZero() && !f.since.Before(f.until) {
		return f, bad(c, "--until %s is not after --since %s", hbackup.FormatTime(f.until), hbackup.FormatTime(f.since))
	}
	return f, nil
}

// wants reports whether the entry passes the filter.
func (f listFilter) wants(e *catalog.Entry) bool {
	if len(f.states) > 0 && !slices.Contains(f.states, string(e.State)) {
		return false
	}
	started := e.Started
	if started.IsZero() {
		started, _ = e.ID.Time() // the zero time shows an entry that nothing is known of
	}
	if started.Before(f.since) || !f.until.IsZero() && !started.Before(f.until) {
		return false
	}
	if f.table.IsZero() {
		return true
	}
	// What cannot be read may hold the table: it is shown rather than hidden.
	return e.Unreadable != nil || slices.ContainsFunc(e.Tables, func(t catalog.TableRun) bool { return t.Table == f.table })
}

// listDocument is the result of list.
type listDocument struct {
	Backups     []runDocument         `json:"backups"`               // made of the rows when they are wanted
	Unreachable []unreachableDocument `json:"unreachable,omitempty"` // what they hold is missing above

	rows []listRow
}

// listRow is one backup of a cluster.
type listRow struct {
	*catalog.Entry
	cluster hbackup.ClusterName
	problem *errorDetails // why the record could not be read
}

// began is when the run started; of a record that cannot be read, the id says so.
func (r listRow) began() time.Time {
	if r.Unreadable != nil && r.Started.IsZero() {
		at, _ := r.ID.Time() // the zero time shows an entry that nothing is known of
		return at
	}
	return r.Started
}

type unreachableDocument struct {
	Cluster  hbackup.ClusterName `json:"cluster"`
	Location string              `json:"location"`
	Error    errorDetails        `json:"error"`
	err      error
}

func (d *listDocument) add(s *session, cl *config.Cluster, h catalog.History, f listFilter) {
	d.rows = slices.Grow(d.rows, len(h.Entries))
	for i := range h.Entries {
		e := &h.Entries[i]
		if !f.wants(e) {
			continue
		}
		row := listRow{Entry: e, cluster: cl.Name}
		if e.Unreadable != nil {
			row.problem = &s.errorsOf(e.Unreadable)[0]
		}
		d.rows = append(d.rows, row)
	}
	var names []string
	for name := range h.Unreachable {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		err := h.Unreachable[name]
		d.Unreachable = append(d.Unreachable, unreachableDocument{cl.Name, name, s.errorsOf(err)[0], err})
	}
}

func (d *listDocument) sort() {
	slices.SortStableFunc(d.rows, func(a, b listRow) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

// describe makes the form for programs.
func (d *listDocument) describe() {
	d.Backups = make([]runDocument, len(d.rows))
	for i, r := range d.rows {
		run := newRun(r.Run, r.Place)
		run.Cluster, run.Error = r.cluster, r.problem
		run.Holder = newHolder(r.Holder)
		if run.Started == "" {
			run.Started = hbackup.FormatTime(r.began())
		}
		d.Backups[i] = run
	}
}

// err says that the list is not whole. When nothing at all could be read, the
// error is that of the location.
func (d listDocument) err() error {
	if len(d.Unreachable) > 0 {
		u := d.Unreachable[0]
		if len(d.rows) == 0 {
			return u.err
		}
		return hbackup.Errorf("list backups", "", hbackup.KindPartial, "%s could not be read: %s", u.Location, u.Error.Message).
			WithHint("the backups of the other locations are shown")
	}
	for _, r := range d.rows {
		if r.problem != nil {
			return hbackup.Errorf("list backups", "", hbackup.KindPartial, "the record of %s could not be read: %s", r.ID, r.problem.Message).
				WithHint("the other backups are shown")
		}
	}
	return nil
}

func (d listDocument) schema() string { return "hbackup.list/1" }

func (d listDocument) lines() ([]part, any) {
	var parts []part
	for _, b := range d.Backups {
		parts = append(parts, part{"backup", b})
	}
	return parts, struct {
		Count       int                   `json:"count"`
		Unreachable []unreachableDocument `json:"unreachable,omitempty"`
	}{len(d.Backups), d.Unreachable}
}

func (d listDocument) table(now nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{Name: "backup"}, ui.Column{Name: "cluster"}, ui.Column{Name: "location"}, ui.Column{Name: "state"},
		ui.Column{Name: "started"}, ui.Column{Name: "took"}, ui.Column{Name: "size", Align: ui.Right}, ui.Column{Name: "copied", Align: ui.Right}, ui.Column{Name: "tables"})
	at := now()
	t.Grow(len(d.rows))
	for _, r := range d.rows {
		took, size, copied := "-", "-", "-"
		if !r.Finished.IsZero() {
			var added int64
			for i := range r.Tables {
				added += r.Tables[i].CopiedBytes
			}
			took, size, copied = hbackup.FormatDuration(r.Finished.Sub(r.Started)), ui.Bytes(r.TotalsOf().Bytes), ui.Bytes(added)
		}
		state := string(r.State)
		if r.problem != nil {
			state = "unreadable"
		}
		t.Row(string(r.ID), string(r.cluster), r.Place, state, ui.Time(r.began(), at), took, size, copied, tableWords(r.Tables))
	}
	return []*ui.Table{t}
}

// tableWords names the tables of a run, or counts them when they are many.
func tableWords(tables []catalog.TableRun) string {
	if len(tables) > 3 {
		return ui.Plural(len(tables), "table", "tables")
	}
	var b strings.Builder
	for i := range tables {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(tables[i].Table.String())
	}
	return b.String()
}
