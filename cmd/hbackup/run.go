package main

import (
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/internal/ui"
	"hbackup/storage/lease"
)

// runDocument describes a backup run: in the results of backup, list and
// describe. Sizes are in bytes, times RFC 3339 in UTC.
type runDocument struct {
	Backup       hbackup.BackupID    `json:"backup"`
	Cluster      hbackup.ClusterName `json:"cluster"`
	Location     string              `json:"location"` // name in the configuration
	State        catalog.State       `json:"state"`
	Request      hbackup.RequestID   `json:"request"`
	Started      string              `json:"started"`
	Finished     string              `json:"finished,omitempty"`
	HBaseVersion string              `json:"hbase_version,omitempty"`
	ClusterID    string              `json:"cluster_id,omitempty"`
	Host         string              `json:"host,omitempty"`
	Writer       string              `json:"writer,omitempty"`
	Committer    string              `json:"committer,omitempty"` // how the files became visible: direct or deferred
	Regions      int                 `json:"regions"`
	Files        int                 `json:"files"`
	Bytes        int64               `json:"bytes"`
	Cells        int64               `json:"cells"`
	CopiedFiles  int                 `json:"copied_files"`
	CopiedBytes  int64               `json:"copied_bytes"`
	Selection    *hbackup.Selection  `json:"selection,omitempty"` // what chose the tables; absent when they were named
	Gone         []hbackup.TableName `json:"gone,omitempty"`      // tables of the selection's last run that this one has not
	Holder       *holderDocument     `json:"holder,omitempty"`    // who works on it, while it is running
	Tables       []tableDocument     `json:"tables,omitempty"`
	Error        *errorDetails       `json:"error,omitempty"` // why the record could not be read

	started, finished time.Time
}

// holderDocument is who has the lease of a run.
type holderDocument struct {
	Owner   string `json:"owner"`   // host and request
	Since   string `json:"since"`   // when that process took it
	Expires string `json:"expires"` // when it ends unless it is renewed, which a living process does
	// Generation grows with each change of the lease.
	Generation int64 `json:"generation"`

	since, expires time.Time
}

// newHolder gives nil when nobody holds it.
func newHolder(h lease.Holder) *holderDocument {
	if h.Generation == 0 {
		return nil
	}
	return &holderDocument{Owner: ui.OneLine(h.Owner), Since: hbackup.FormatTime(h.Acquired), Expires: hbackup.FormatTime(h.Expires), Generation: h.Generation,
		since: h.Acquired, expires: h.Expires}
}

// tableDocument is one table of a run.
type tableDocument struct {
	Table            hbackup.TableName `json:"table"`
	Image            hbackup.ImageID   `json:"image,omitempty"` // absent when there is none
	SnapshotStarted  string            `json:"snapshot_started,omitempty"`
	SnapshotFinished string            `json:"snapshot_finished,omitempty"`
	Regions          int               `json:"regions"`
	Files            int               `json:"files"`
	Bytes            int64             `json:"bytes"`
	Cells            int64             `json:"cells"`
	CopiedFiles      int               `json:"copied_files"`
	CopiedBytes      int64             `json:"copied_bytes"`
	SharedBytes      *int64            `json:"shared_bytes,omitempty"` // named by other images of the table, too; absent when nobody asked
	// ReplacedFiles of the copied ones were there, damaged.
	ReplacedFiles int `json:"replaced_files,omitempty"`
	// References are other locations that hold files of the image.
	References []catalog.Reference `json:"references,omitempty"`
	Caveat     *errorDetails       `json:"caveat,omitempty"` // why a restore would refuse the image
	Error      *errorDetails       `json:"error,omitempty"`
}

func newRun(r catalog.Run, location string) runDocument {
	totals := r.TotalsOf()
	d := runDocument{
		Backup: r.ID, Cluster: r.Cluster, Location: location, State: r.State, Request: r.Request,
		Started: hbackup.FormatTime(r.Started), Finished: hbackup.FormatTime(r.Finished),
		HBaseVersion: r.HBaseVersion, ClusterID: r.ClusterID, Host: r.Host, Writer: r.Writer, Committer: r.Committer,
		Regions: totals.Regions, Files: totals.Files, Bytes: totals.Bytes, Cells: totals.Cells,
		Selection: r.Selection, Gone: r.Gone,
		started: r.Started, finished: r.Finished,
	}
	for _, t := range r.Tables {
		d.CopiedFiles += t.CopiedFiles
		d.CopiedBytes += t.CopiedBytes
		td := tableDocument{
			Table: t.Table, Image: t.Image,
			SnapshotStarted: hbackup.FormatTime(t.SnapshotStarted), SnapshotFinished: hbackup.FormatTime(t.SnapshotFinished),
			Regions: t.Totals.Regions, Files: t.Totals.Files, Bytes: t.Totals.Bytes, Cells: t.Totals.Cells,
			CopiedFiles: t.CopiedFiles, CopiedBytes: t.CopiedBytes, ReplacedFiles: t.ReplacedFiles, References: t.References,
		}
		td.Caveat, td.Error = failureDetails(t.Caveat), failureDetails(t.Failure)
		d.Tables = append(d.Tables, td)
	}
	return d
}

func failureDetails(f *catalog.Failure) *errorDetails {
	if f == nil {
		return nil
	}
	return &errorDetails{Kind: string(f.Kind), Message: ui.OneLine(f.Message), Hint: ui.OneLine(f.Hint)}
}

// tableLines are the tables of the run as lines of a JSON stream.
func (d runDocument) tableLines() []part {
	var parts []part
	for _, t := range d.Tables {
		parts = append(parts, part{"table", t})
	}
	return parts
}

// head is the run as a list of its properties.
func (d runDocument) head(now nowFunc) *ui.Table {
	t := ui.NewTable(ui.Column{}, ui.Column{})
	t.Row("backup", string(d.Backup))
	t.Row("state", string(d.State))
	t.Row("cluster", string(d.Cluster))
	t.Row("location", d.Location)
	t.Row("request", string(d.Request))
	if d.Selection != nil {
		t.Row("tables", d.Selection.String())
	}
	t.Row("started", ui.Time(d.started, now()))
	if h := d.Holder; h != nil {
		t.Row("held by", h.Owner+", since "+ui.Time(h.since, now())+"; its lease lasts until "+ui.Time(h.expires, now())+" unless it is renewed")
	}
	if !d.finished.IsZero() {
		t.Row("finished", ui.Time(d.finished, now())+", took "+hbackup.FormatDuration(d.finished.Sub(d.started)))
	}
	if d.HBaseVersion != "" {
		t.Row("hbase", d.HBaseVersion)
	}
	if d.Writer != "" {
		t.Row("written by", "hbackup "+d.Writer+" on "+d.Host)
	}
	if d.Committer != "" {
		t.Row("committer", d.Committer)
	}
	if len(d.Gone) > 0 {
		t.Row("gone", "not in this run, but in the last one of this selection: "+hbackup.FirstTables(d.Gone, 10))
	}
	if d.finished.IsZero() {
		return t
	}
	t.Row("size", ui.Bytes(d.Bytes)+" in "+ui.Plural(d.Files, "file", "files")+", "+ui.Bytes(d.CopiedBytes)+" copied")
	d.remarks(t)
	return t
}

// tableTable shows one line for each table, and one for each error.
func (d runDocument) tableTable() *ui.Table {
	t := ui.NewTable(ui.Column{Name: "table"}, ui.Column{Name: "image"}, ui.Column{Name: "regions", Align: ui.Right}, ui.Column{Name: "files", Align: ui.Right},
		ui.Column{Name: "size", Align: ui.Right}, ui.Column{Name: "copied", Align: ui.Right}, ui.Column{Name: "cells", Align: ui.Right}, ui.Column{Name: "error"})
	for _, td := range d.Tables {
		problem, message := td.Error, "-"
		if td.Image != "" {
			problem, message = td.Caveat, ""
		}
		switch {
		case problem != nil && td.Image != "":
			message = "cannot be restored as it is: " + problem.Message
		case problem != nil:
			message = problem.Message
		}
		if td.Image == "" {
			t.Row(td.Table.String(), "-", "-", "-", "-", "-", "-", message)
		} else {
			t.Row(td.Table.String(), string(td.Image), ui.Count(td.Regions), ui.Count(td.Files), ui.Bytes(td.Bytes), ui.Bytes(td.CopiedBytes), ui.Count(td.Cells), message)
		}
		if problem != nil && problem.Hint != "" {
			t.Row("", "", "", "", "", "", "", "hint: "+problem.Hint)
		}
	}
	return t
}
