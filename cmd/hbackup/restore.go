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
	"hbackup/restore"
)

// restoreRunner makes a table on a cluster from an image.
type restoreRunner interface {
	Restore(context.Context, *config.Cluster, restore.Request, restore.Options) (restore.Result, error)
}

func (p *program) restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "restore a table of a backup as a new table",
		ArgsUsage: "ID",
		Description: `
Makes a new table from the image of a table, in the cluster that was backed up or
in another one. Tables that exist are never touched: a target that is there is
refused before anything is written. ID is that of a backup or of an image.

A run that was killed or interrupted is continued by the same command with the
same --request-id; one that is done is confirmed and exits with 0.`,
		UsageText: `
hbackup restore 20261130T230501.123Z-7f3k2m9q4x --table ns:orders --as ns:orders_restored
hbackup restore 20261130T230501.123Z-7f3k2m9q4x --table ns:orders --as ns:orders --to-cluster dr --create-namespace`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "table", Usage: "`TABLE` of the backup to restore (default: the only one)"},
			&cli.StringFlag{Name: "as", Usage: "name of the new `TABLE` (required)"},
			&cli.StringFlag{Name: "from-cluster", Usage: "`NAME` of the cluster that was backed up (default: look in all)"},
			&cli.StringFlag{Name: "to-cluster", Usage: "`NAME` of the cluster to restore to (default: the one that was backed up)"},
			&cli.BoolFlag{Name: "create-namespace", Usage: "make the new table's name space when it is missing"},
			&cli.BoolFlag{Name: "allow-older-hbase", Usage: "restore to an HBase that is older than the one that was backed up; it may not be able to read the files"},
			requestIDFlag(),
		},
		Action: p.restore,
	}
}

// restoreOrder is what the command line asks for.
type restoreOrder struct {
	ref       backupRef
	table, as hbackup.TableName
	from, to  hbackup.ClusterName
	request   hbackup.RequestID
	create    bool
	older     bool
}

func (p *program) parseRestore(c *cli.Context) (o restoreOrder, err error) {
	if err = p.arguments(c, "ID"); err != nil {
		return o, err
	}
	if o.ref, err = parseBackupRef(c, c.Args().First()); err != nil {
		return o, err
	}
	if o.table, err = tableName(c, "table"); err != nil {
		return o, err
	}
	if _, err = required(c, "as", "ns:orders_restored"); err != nil {
		return o, err
	}
	if o.as, err = tableName(c, "as"); err != nil {
		return o, err
	}
	if o.as.IsSystem() {
		return o, bad(c, "--as: the name space %s is HBase's own", hbackup.SystemNamespace)
	}
	if o.from, err = clusterName(c, "from-cluster"); err != nil {
		return o, err
	}
	if o.to, err = clusterName(c, "to-cluster"); err != nil {
		return o, err
	}
	o.create, o.older = c.Bool("create-namespace"), c.Bool("allow-older-hbase")
	o.request, err = requestID(c, p.now())
	return o, err
}

func (p *program) restore(c *cli.Context) error {
	o, err := p.parseRestore(c)
	if err != nil {
		return err
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		var target *config.Cluster
		if o.to != "" {
			if target, err = s.cluster(o.to); err != nil {
				return err
			}
		}
		found, err := s.find(ctx, o.from, o.ref)
		if err != nil {
			return err
		}
		if target == nil {
			target = found.cluster
		}
		image, err := found.tableFor(o.table)
		if err != nil {
			return err
		}
		s.log.Info("restore starts", "image", image.ID, "table", image.Table, "as", o.as, "cluster", target.Name, "request", o.request)
		progress, stop := s.track()
		result, err := s.services.Restore(ctx, target, restore.Request{
			ID: o.request, Image: image, As: o.as, CreateNamespace: o.create, AllowOlderHBase: o.older,
		}, restore.Options{
			Files: s.cfg.Copy.Concurrency, Host: hostName(), Writer: writer(),
			Reporter: restoreProgress{progress}, Log: s.log,
		})
		stop()
		if err != nil {
			for _, note := range result.Notes {
				s.log.Warn(note)
			}
			return goOn(err, o.request)
		}
		return s.emit(newRestoreDocument(result, image, target))
	})
}

// tableFor gives the image of the table, or the only image when no table is named.
func (f foundBackup) tableFor(t hbackup.TableName) (catalog.Found, error) {
	var names []string
	for _, tr := range f.run.Tables {
		if tr.Table == t && tr.Image == "" {
			return catalog.Found{}, hbackup.Errorf("find image of table", t.String(), hbackup.KindNotFound, "backup %s has none: the table failed", f.run.ID).
				WithHint("hbackup describe %s shows why", f.run.ID)
		}
		if tr.Image == "" {
			continue
		}
		if tr.Table == t {
			return f.image(tr), nil
		}
		names = append(names, tr.Table.String())
	}
	slices.Sort(names)
	switch {
	case !t.IsZero():
		return catalog.Found{}, hbackup.Errorf("find image of table", t.String(), hbackup.KindNotFound, "backup %s has none", f.run.ID).
			WithHint("it holds: %s", strings.Join(names, ", "))
	case len(names) == 0:
		return catalog.Found{}, hbackup.Errorf("find image in backup", string(f.run.ID), hbackup.KindNotFound, "it has none").
			WithHint("hbackup describe %s shows its state", f.run.ID)
	case len(names) > 1:
		return catalog.Found{}, hbackup.Errorf("restore", string(f.run.ID), hbackup.KindUsage, "the backup holds several tables; say which one with --table").
			WithHint("it holds: %s", strings.Join(names, ", "))
	}
	for _, tr := range f.run.Tables {
		if tr.Image != "" {
			return f.image(tr), nil
		}
	}
	return catalog.Found{}, nil // not reached: one name was counted
}

// restoreProgress translates what a restore reports.
type restoreProgress struct{ *ui.Progress }

func (r restoreProgress) Stage(name string)               { r.Progress.Stage("", name) }
func (r restoreProgress) AddTotal(bytes int64, files int) { r.Expect("", files, bytes) }
func (r restoreProgress) Done(bytes int64, files int)     { r.Progress.Done("", files, bytes, false) }

// restoreDocument is the result of restore.
type restoreDocument struct {
	AlreadyDone bool                `json:"already_done"`
	Request     hbackup.RequestID   `json:"request"`
	Image       hbackup.ImageID     `json:"image"`
	Source      hbackup.TableName   `json:"source_table"`
	Table       hbackup.TableName   `json:"table"`
	Cluster     hbackup.ClusterName `json:"cluster"`
	Location    string              `json:"location"`
	Started     string              `json:"started"`
	Finished    string              `json:"finished"`
	Regions     int                 `json:"regions"`
	Files       int                 `json:"files"`
	Bytes       int64               `json:"bytes"`
	CopiedFiles int                 `json:"copied_files"`
	CopiedBytes int64               `json:"copied_bytes"`
	Notes       []string            `json:"notes,omitempty"`

	result restore.Result
}

func newRestoreDocument(r restore.Result, image catalog.Found, to *config.Cluster) restoreDocument {
	return restoreDocument{
		AlreadyDone: r.AlreadyDone, Request: r.Request, Image: r.Image, Source: image.Table, Table: r.Table, Cluster: to.Name, Location: image.Place.Name,
		Started: hbackup.FormatTime(r.Started), Finished: hbackup.FormatTime(r.Finished), Regions: r.Regions, Files: r.Files, Bytes: r.Bytes,
		CopiedFiles: r.CopiedFiles, CopiedBytes: r.CopiedBytes, Notes: r.Notes, result: r,
	}
}

func (d restoreDocument) schema() string       { return "hbackup.restore/1" }
func (d restoreDocument) lines() ([]part, any) { return nil, d }

func (d restoreDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{}, ui.Column{})
	t.Row("table", d.Table.String())
	t.Row("cluster", string(d.Cluster))
	t.Row("image", string(d.Image)+" of "+d.Source.String())
	t.Row("location", d.Location)
	t.Row("request", string(d.Request))
	if d.AlreadyDone {
		t.Row("note", "already done by an earlier run of this request")
		return []*ui.Table{t}
	}
	t.Row("took", hbackup.FormatDuration(d.result.Finished.Sub(d.result.Started)))
	t.Row("size", ui.Bytes(d.Bytes)+" in "+ui.Plural(d.Files, "file", "files")+" and "+ui.Plural(d.Regions, "region", "regions")+", "+ui.Bytes(d.CopiedBytes)+" copied")
	for _, n := range d.Notes {
		t.Row("note", n)
	}
	return []*ui.Table{t}
}
