package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"hbackup/catalog"
	"hbackup/config"
	"hbackup/internal/ui"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "show the version of hbackup and of the formats that it writes",
		UsageText: `
hbackup version
hbackup version -o json`,
		Action: func(c *cli.Context) error {
			if err := p.arguments(c); err != nil {
				return err
			}
			return p.emit(newVersionDocument())
		},
	}
}

// writer names this hbackup in records.
func writer() string { return version }

// versionDocument is the result of version.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified"`           // the source was changed since that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Config   int    `json:"config_version"` // of the configuration file
	Records  int    `json:"record_format"`  // of the records in a location
}

func newVersionDocument() versionDocument {
	d := versionDocument{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Config: config.Version, Records: catalog.RunFormat}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = s.Value
		case "vcs.modified":
			d.Modified = s.Value == "true"
		}
	}
	return d
}

func (d versionDocument) schema() string       { return "hbackup.version/1" }
func (d versionDocument) lines() ([]part, any) { return nil, d }

func (d versionDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{}, ui.Column{})
	t.Row("hbackup", d.Version)
	if d.Revision != "" {
		state := ""
		if d.Modified {
			state = ", changed since"
		}
		t.Row("source", d.Revision+state)
	}
	t.Row("built with", d.Go+" for "+d.Platform)
	t.Row("reads", "configuration of version "+ui.Count(d.Config))
	t.Row("writes", "records of format "+ui.Count(d.Records))
	return []*ui.Table{t}
}
