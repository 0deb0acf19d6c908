package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/union"
	"hbackup/config"
	"hbackup/internal/ui"
)

// infoReader reads what info shows.
type infoReader interface {
	// Info reads the history of a cluster, with the images that runs have committed
	// which died since the last complete one, and, when sizes are wanted, what each
	// location stores.
	Info(ctx context.Context, cl *config.Cluster, sizes bool) (clusterState, error)
}

// clusterState is what the locations say of a cluster.
type clusterState struct {
	history catalog.History
	reached map[string]bool        // ids of the locations that were reached
	stored  map[string]storedSizes // by location; absent where sizes are not wanted or the location is not reached
}

// storedSizes is what a location stores for a cluster.
type storedSizes struct {
	all    union.Totals // each file once
	tables map[hbackup.TableName]union.Totals
	images map[hbackup.TableName][]hbackup.ImageID // whose manifests are there, ascending; nil when that is not known
	err    error                                   // why it is not known
}

func (p *program) infoCommand() *cli.Command {
	return &cli.Command{
		Name:  "info",
		Usage: "show whether all is well: restorable moments, sizes, locations, open runs",
		Description: `
Shows for each table up to which moment it can be restored and how long ago that
is, what its last backup came to, and sizes: source is the table at its newest
image, added what the last backup wrote, stored all files of all images, each
once, and shared what of these two images or more have in common. Then each
location, and the runs that work or died. A table is late when its newest
restorable moment is older than clusters.NAME.max_age.

The locations alone are asked, so this works when the cluster is down; hbackup
check looks at the cluster. The exit code is 0 when all is well, and 3 when
something is not: the lines at the end say what.`,
		UsageText: `
hbackup info
hbackup info --cluster prod
hbackup info --no-sizes -o json`,
		Flags: []cli.Flag{
			clusterFlag("`NAME` of the cluster (default: all)"),
			&cli.BoolFlag{Name: "no-sizes", Usage: "do not find out what is stored and shared: the first time, every manifest is read for it"},
		},
		Action: p.info,
	}
}

func (p *program) info(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	name, err := clusterName(c, "cluster")
	if err != nil {
		return err
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		clusters, err := s.clusters(name)
		if err != nil {
			return err
		}
		d := infoDocument{Well: true}
		for _, cl := range clusters {
			state, err := s.services.Info(ctx, cl, !c.Bool("no-sizes"))
			if err != nil {
				return err
			}
			if err := nothingRead(state.history, s.cfg.LocationsOf(cl)); err != nil && len(clusters) == 1 {
				return err
			}
			ci := s.assess(cl, state)
			d.Well = d.Well && ci.Well
			d.Clusters = append(d.Clusters, ci)
		}
		if err := s.emit(d); err != nil {
			return err
		}
		return d.err()
	})
}

// nothingRead gives an error when no location of a cluster could be read at all.
func nothingRead(h catalog.History, locations []*config.Location) error {
	if len(h.Unreachable) < len(locations) || len(h.Entries) > 0 {
		return nil
	}
	return h.Unreachable[string(locations[0].Name)]
}

// infoDocument is the result of info.
type infoDocument struct {
	Well     bool          `json:"well"`
	Clusters []clusterInfo `json:"clusters"`
}

// clusterInfo is the state of a cluster's backups. Sizes are in bytes, ages in
// seconds, times RFC 3339 in UTC.
type clusterInfo struct {
	Cluster       hbackup.ClusterName `json:"cluster"`
	Well          bool                `json:"well"`
	MaxAgeSeconds float64             `json:"max_age_seconds,omitempty"` // absent when the configuration has none
	Tables        []tableInfo         `json:"tables"`
	Locations     []locationInfo      `json:"locations"`
	OpenRuns      []openRun           `json:"open_runs"`
	Problems      []string            `json:"problems"` // empty when all is well
}

// tableInfo is the state of a table's backups.
type tableInfo struct {
	Cluster hbackup.ClusterName `json:"cluster"`
	Table   hbackup.TableName   `json:"table"`
	State   tableState          `json:"state"`
	// RestorableTo is the moment up to which everything is in the newest image that
	// can be restored; the other fields about it are absent, too, when there is none.
	RestorableTo string          `json:"restorable_to,omitempty"`
	AgeSeconds   float64         `json:"age_seconds,omitempty"`
	Image        hbackup.ImageID `json:"image,omitempty"`
	Location     string          `json:"location,omitempty"`
	SourceBytes  int64           `json:"source_bytes"` // of the table in that image
	// LastRun is the last run that had the table, AddedBytes what it copied.
	LastRun      hbackup.BackupID `json:"last_run"`
	LastRunState catalog.State    `json:"last_run_state"`
	AddedBytes   int64            `json:"added_bytes"`
	StoredBytes  *int64           `json:"stored_bytes,omitempty"` // in all locations; absent when it is not known
	SharedBytes  *int64           `json:"shared_bytes,omitempty"` // of these
	Error        *errorDetails    `json:"error,omitempty"`        // why the last run has no image, or a restore would refuse it

	restorable time.Time
}

// tableState says in one word how a table is.
type tableState string

const (
	tableOK      tableState = "ok"
	tableLate    tableState = "late"      // the newest restorable moment is older than max_age
	tableFailed  tableState = "failed"    // the last run that had the table made no image of it
	tableCaveat  tableState = "caveat"    // the last image cannot be restored as it is, or not now
	tableNothing tableState = "no backup" // no image can be restored
	tableGone    tableState = "gone"      // a later run of its selection has it no more
)

// well reports whether nobody needs to look at the table.
func (s tableState) well() bool { return s == tableOK || s == tableGone }

// locationInfo is the state of a location.
type locationInfo struct {
	Cluster     hbackup.ClusterName `json:"cluster"`
	Location    string              `json:"location"`
	Target      bool                `json:"target"` // new backups go there
	Reachable   bool                `json:"reachable"`
	Backups     int                 `json:"backups"` // that have reached their end
	Newest      hbackup.BackupID    `json:"newest,omitempty"`
	StoredFiles *int                `json:"stored_files,omitempty"` // each once; absent when it is not known
	StoredBytes *int64              `json:"stored_bytes,omitempty"`
	SharedBytes *int64              `json:"shared_bytes,omitempty"`
	Error       *errorDetails       `json:"error,omitempty"`

	newest time.Time
}

// openRun is a run that works, or that has died and left a table without the backup
// that it was for.
type openRun struct {
	Cluster  hbackup.ClusterName `json:"cluster"`
	Backup   hbackup.BackupID    `json:"backup"`
	Request  hbackup.RequestID   `json:"request"`
	Location string              `json:"location"`
	State    catalog.State       `json:"state"`
	Started  string              `json:"started"`
	Host     string              `json:"host,omitempty"`
	Tables   []hbackup.TableName `json:"tables"`
	Advice   string              `json:"advice"` // what to do

	started time.Time
}

func (d infoDocument) schema() string { return "hbackup.info/1" }

// err says that not all is well.
func (d infoDocument) err() error {
	var all []string
	for _, c := range d.Clusters {
		all = append(all, c.Problems...)
	}
	switch {
	case d.Well:
		return nil
	case len(all) == 1:
		return hbackup.Errorf("info", "", hbackup.KindPartial, "not all is well: %s", all[0])
	}
	return hbackup.Errorf("info", "", hbackup.KindPartial, "not all is well: %s, and %d more", all[0], len(all)-1)
}

func (d infoDocument) lines() ([]part, any) {
	type summary struct {
		Cluster       hbackup.ClusterName `json:"cluster"`
		Well          bool                `json:"well"`
		MaxAgeSeconds float64             `json:"max_age_seconds,omitempty"`
		Problems      []string            `json:"problems"`
	}
	var parts []part
	clusters := []summary{}
	for _, c := range d.Clusters {
		for _, t := range c.Tables {
			parts = append(parts, part{"table", t})
		}
		for _, l := range c.Locations {
			parts = append(parts, part{"location", l})
		}
		for _, r := range c.OpenRuns {
			parts = append(parts, part{"open_run", r})
		}
		clusters = append(clusters, summary{c.Cluster, c.Well, c.MaxAgeSeconds, c.Problems})
	}
	return parts, struct {
		Well     bool      `json:"well"`
		Clusters []summary `json:"clusters"`
	}{d.Well, clusters}
}

func (d infoDocument) table(now nowFunc) []*ui.Table {
	at := now()
	right := func(name string) ui.Column { return ui.Column{Name: name, Align: ui.Right} }
	tables := ui.NewTable(ui.Column{Name: "cluster"}, ui.Column{Name: "table"}, ui.Column{Name: "state"}, ui.Column{Name: "restorable to"}, ui.Column{Name: "location"},
		ui.Column{Name: "last run"}, right("source"), right("added"), right("stored"), right("shared"))
	locations := ui.NewTable(ui.Column{Name: "cluster"}, ui.Column{Name: "location"}, ui.Column{Name: "state"}, right("backups"), ui.Column{Name: "newest"}, right("files"), right("stored"), right("shared"))
	runs := ui.NewTable(ui.Column{Name: "cluster"}, ui.Column{Name: "run"}, ui.Column{Name: "location"}, ui.Column{Name: "state"}, ui.Column{Name: "started"}, ui.Column{Name: "tables"}, ui.Column{Name: "what to do"})
	verdict := ui.NewTable(ui.Column{}, ui.Column{})
	open := false
	for _, c := range d.Clusters {
		for _, t := range c.Tables {
			restorable, source := "-", "-"
			if t.Image != "" {
				restorable, source = ui.Time(t.restorable, at), ui.Bytes(t.SourceBytes)
			}
			tables.Row(string(c.Cluster), t.Table.String(), string(t.State), restorable, dash(t.Location), string(t.LastRunState), source, ui.Bytes(t.AddedBytes), bytesOf(t.StoredBytes), bytesOf(t.SharedBytes))
		}
		for _, l := range c.Locations {
			state, files := "ok", "-"
			switch {
			case !l.Reachable:
				state = "not readable"
			case l.Error != nil:
				state = "sizes unknown"
			}
			if l.StoredFiles != nil {
				files = ui.Count(*l.StoredFiles)
			}
			locations.Row(string(c.Cluster), l.Location, state, ui.Count(l.Backups), ui.Time(l.newest, at), files, bytesOf(l.StoredBytes), bytesOf(l.SharedBytes))
		}
		for _, r := range c.OpenRuns {
			open = true
			runs.Row(string(c.Cluster), string(r.Backup), r.Location, string(r.State), ui.Time(r.started, at), hbackup.FirstTables(r.Tables, 3), r.Advice)
		}
		if c.Well {
			verdict.Row(string(c.Cluster)+":", "all is well")
		}
		for _, problem := range c.Problems {
			verdict.Row(string(c.Cluster)+":", problem)
		}
	}
	all := []*ui.Table{tables, locations}
	if open {
		all = append(all, runs)
	}
	return append(all, verdict)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func bytesOf(n *int64) string {
	if n == nil {
		return "-"
	}
	return ui.Bytes(*n)
}

// sortedTables brings tables into the order of their names.
func sortedTables(all []tableInfo) {
	slices.SortFunc(all, func(a, b tableInfo) int { return a.Table.Compare(b.Table) })
}

// commandOf is the command that goes on with a run.
func commandOf(cluster hbackup.ClusterName, r catalog.Run) string {
	words := []string{"hbackup backup --cluster", string(cluster)}
	switch {
	case r.Selection != nil && r.Selection.Set != "":
		words = append(words, "--table-set", r.Selection.Set)
	case r.Selection == nil && len(r.Tables) > 0 && len(r.Tables) <= 3:
		var names []string
		for _, t := range r.Tables {
			names = append(names, t.Table.String())
		}
		words = append(words, "--tables", strings.Join(names, ","))
	case r.Selection == nil:
		words = append(words, "--tables …")
	}
	return strings.Join(append(words, "--request-id", string(r.Request)), " ")
}
