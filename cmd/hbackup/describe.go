package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/internal/ui"
	"hbackup/storage/lease"
)

// backupFinder looks for a backup by its id in the locations of clusters, in
// their order. It fails with KindNotFound when all of them could be asked and
// none has it.
type backupFinder interface {
	FindBackup(context.Context, []*config.Cluster, hbackup.BackupID) (foundBackup, error)
	// ReadHead reads what the manifest of an image says of all of it.
	ReadHead(context.Context, catalog.Found) (catalog.Header, error)
	// Shared gives how many bytes of each image of a backup other images of the same
	// table and location name, too.
	Shared(context.Context, foundBackup) (map[hbackup.ImageID]int64, error)
}

// foundBackup is a backup and where it is.
type foundBackup struct {
	cluster *config.Cluster
	place   catalog.Place
	run     catalog.Run
	// elsewhere finds other locations that hold files of the backup.
	elsewhere catalog.Elsewhere
	holder    lease.Holder // who works on it, while it is running
}

// image gives what is needed to work with one table's image.
func (f foundBackup) image(t catalog.TableRun) catalog.Found {
	return catalog.Found{Place: f.place, Table: t.Table, ID: t.Image, Elsewhere: f.elsewhere}
}

// only leaves just the image that was asked for; an image that the backup does
// not have is KindNotFound.
func (f foundBackup) only(ref backupRef) (foundBackup, error) {
	if ref.image == "" {
		return f, nil
	}
	f.run.Tables = slices.DeleteFunc(slices.Clone(f.run.Tables), func(t catalog.TableRun) bool { return t.Image != ref.image })
	if len(f.run.Tables) == 0 {
		return f, hbackup.Errorf("find image", string(ref.image), hbackup.KindNotFound, "the backup has no such image").
			WithHint("hbackup describe %s shows its images", ref.backup)
	}
	return f, nil
}

func (p *program) describeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "show everything about one backup",
		ArgsUsage: "ID",
		Description: `
Shows the state of a backup, what it holds of each table, and the error of each
table that failed. ID is that of a backup or of one of its images; of an image the
families of its table are shown as well.`,
		UsageText: `
hbackup describe 20261130T230501.123Z-7f3k2m9q4x
hbackup describe 20261130T230501.123Z-7f3k2m9q4x --shared
hbackup describe 20261130T230501.123Z-7f3k2m9q4x -o json
hbackup describe 20261130T230501.123Z-7f3k2m9q4x.0003`,
		Flags: []cli.Flag{
			clusterFlag("`NAME` of the cluster that was backed up (default: look in all)"),
			&cli.BoolFlag{Name: "shared", Usage: "find out how much of each image other images of its table name, too; the first time, every manifest of the table is read for it"},
		},
		Action: p.describe,
	}
}

func (p *program) describe(c *cli.Context) error {
	if err := p.arguments(c, "ID"); err != nil {
		return err
	}
	ref, err := parseBackupRef(c, c.Args().First())
	if err != nil {
		return err
	}
	name, err := clusterName(c, "cluster")
	if err != nil {
		return err
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		found, err := s.find(ctx, name, ref)
		if err != nil {
			return err
		}
		d := describeDocument{runDocument: newRun(found.run, found.place.Name)}
		d.Holder = newHolder(found.holder)
		if ref.image != "" {
			h, err := s.services.ReadHead(ctx, found.image(found.run.Tables[0]))
			if err != nil {
				return err
			}
			d.Image = newImage(h)
		}
		if c.Bool("shared") {
			shared, err := s.services.Shared(ctx, found)
			if err != nil {
				return err
			}
			for i := range d.Tables {
				if n, ok := shared[d.Tables[i].Image]; ok {
					d.Tables[i].SharedBytes = &n
				}
			}
		}
		return s.emit(d)
	})
}

// find looks for the backup and leaves the image that was asked for.
func (s *session) find(ctx context.Context, name hbackup.ClusterName, ref backupRef) (foundBackup, error) {
	clusters, err := s.clusters(name)
	if err != nil {
		return foundBackup{}, err
	}
	found, err := s.services.FindBackup(ctx, clusters, ref.backup)
	if err != nil {
		return found, err
	}
	return found.only(ref)
}

// describeDocument is the result of describe.
type describeDocument struct {
	runDocument
	Image *imageDocument `json:"image,omitempty"` // when one was asked for
}

// imageDocument is what the manifest of an image says beyond the run's record.
type imageDocument struct {
	Disabled  bool              `json:"table_disabled"`
	Namespace map[string]string `json:"namespace_configuration,omitempty"`
	Schema    *catalog.Schema   `json:"schema,omitempty"`
	Parents   []hbackup.ImageID `json:"parents,omitempty"` // earlier images that its files were compared with
	Fence     int64             `json:"fence,omitempty"`
}

func newImage(h catalog.Header) *imageDocument {
	return &imageDocument{h.Disabled, h.Namespace, h.Schema, h.Parents, h.Fence}
}

// families shows the summary of the schema.
func (d *imageDocument) families() *ui.Table {
	t := ui.NewTable(ui.Column{Name: "family"}, ui.Column{Name: "attributes"})
	for _, f := range d.Schema.Families {
		var shown []string
		for _, name := range catalog.SchemaAttributes() {
			if v, ok := f.Attributes[name]; ok {
				shown = append(shown, name+"="+v)
			}
		}
		t.Row(string(f.Name), strings.Join(shown, " "))
	}
	if d.Schema.MoreFamilies > 0 {
		t.Row("", "and "+ui.Plural(d.Schema.MoreFamilies, "more family", "more families"))
	}
	return t
}

func (d describeDocument) schema() string { return "hbackup.describe/1" }

func (d describeDocument) lines() ([]part, any) {
	parts := d.tableLines()
	d.Tables = nil
	return parts, d
}

func (d describeDocument) table(now nowFunc) []*ui.Table {
	tables := []*ui.Table{d.head(now)}
	if len(d.Tables) > 0 {
		tables = append(tables, d.tableTable())
	}
	if shared := d.shared(); shared != nil {
		tables = append(tables, shared)
	}
	if moments := d.moments(); moments != nil {
		tables = append(tables, moments)
	}
	if d.Image != nil && d.Image.Schema != nil {
		tables = append(tables, d.Image.families())
	}
	return tables
}

// shared shows how much of each image other images have, too; nil when nobody asked.
func (d describeDocument) shared() *ui.Table {
	right := func(name string) ui.Column { return ui.Column{Name: name, Align: ui.Right} }
	t := ui.NewTable(ui.Column{Name: "image"}, right("size"), right("shared"), right("its own"))
	any := false
	for _, td := range d.Tables {
		if td.SharedBytes != nil {
			any = true
			own := td.Bytes - *td.SharedBytes
			for _, r := range td.References {
				own -= r.Bytes // lies in another location
			}
			t.Row(string(td.Image), ui.Bytes(td.Bytes), ui.Bytes(*td.SharedBytes), ui.Bytes(own))
		}
	}
	if !any {
		return nil
	}
	return t
}

// moments shows between which two moments each image shows its table.
func (d describeDocument) moments() *ui.Table {
	t := ui.NewTable(ui.Column{Name: "image"}, ui.Column{Name: "snapshot from"}, ui.Column{Name: "to"})
	any := false
	for _, td := range d.Tables {
		if td.Image != "" {
			any = true
			t.Row(string(td.Image), td.SnapshotStarted, td.SnapshotFinished)
		}
	}
	if !any {
		return nil
	}
	return t
}
