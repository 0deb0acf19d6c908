package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"hbackup/config"
	"hbackup/internal/ui"
)

func (p *program) configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "show or validate the configuration",
		Subcommands: []*cli.Command{
			{
				Name:  "show",
				Usage: "show every key with its value and where the value comes from",
				Description: `
Shows the configuration as it is after the file, the environment and the flags.
Of secrets it is shown where they are and whether they are there, never what
they are.`,
				UsageText: `
hbackup config show
hbackup config show --set clusters.prod.target=old -o json`,
				Action: p.configShow,
			},
			{
				Name:  "validate",
				Usage: "check the configuration without reaching anything",
				Description: `
Reads the configuration and reports its faults with line and key, and what
to do. No cluster and no location is reached: hbackup check does that.`,
				UsageText: `
hbackup config validate
hbackup config validate --config /etc/hbackup/hbackup.yaml`,
				Action: p.configValidate,
			},
		},
	}
}

func (p *program) configShow(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	cfg, err := p.load(c)
	if err != nil {
		return err
	}
	d := configDocument{File: cfg.File, Values: []valueDocument{}, Warnings: warningsOf(cfg)}
	for _, v := range cfg.Values() {
		d.Values = append(d.Values, valueDocument{Key: v.Path, Value: v.Text, Set: v.Set, Origin: v.Origin})
	}
	return p.emit(d)
}

// configDocument is the result of config show.
type configDocument struct {
	File     string          `json:"file"`
	Values   []valueDocument `json:"values"`
	Warnings []string        `json:"warnings,omitempty"`
}

type valueDocument struct {
	Key    string        `json:"key"`
	Value  string        `json:"value"` // as the file would have it; lists separated by ", "
	Set    bool          `json:"set"`   // false: there is neither a setting nor a default
	Origin config.Origin `json:"origin"`
}

func (d configDocument) schema() string { return "hbackup.config.show/1" }

func (d configDocument) lines() ([]part, any) {
	var parts []part
	for _, v := range d.Values {
		parts = append(parts, part{"value", v})
	}
	return parts, struct {
		File     string   `json:"file"`
		Warnings []string `json:"warnings,omitempty"`
	}{d.File, d.Warnings}
}

func (d configDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{Name: "key"}, ui.Column{Name: "value"}, ui.Column{Name: "origin"})
	for _, v := range d.Values {
		value := v.Value
		if !v.Set && value == "" {
			value = "(not set)"
		}
		t.Row(v.Key, value, v.Origin.String())
	}
	return append([]*ui.Table{t}, warningTable(d.Warnings)...)
}

func (p *program) configValidate(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	cfg, err := p.load(c)
	if err != nil {
		return err
	}
	d := validateDocument{File: cfg.File, Valid: true, Clusters: len(cfg.Clusters), Locations: len(cfg.Locations), Warnings: warningsOf(cfg)}
	d.Checked = []string{
		"every key is known and written once",
		"every value has the right form and is in range",
		fmt.Sprintf("%s and %s: names, addresses and directories", ui.Plural(d.Clusters, "cluster", "clusters"), ui.Plural(d.Locations, "location", "locations")),
		"targets and histories name locations",
		"no two locations are the same place, and none lies in a directory of HBase",
		"secrets are referred to, not written down",
	}
	return p.emit(d)
}

// validateDocument is the result of config validate.
type validateDocument struct {
	File      string   `json:"file"`
	Valid     bool     `json:"valid"`
	Clusters  int      `json:"clusters"`
	Locations int      `json:"locations"`
	Checked   []string `json:"checked"`
	Warnings  []string `json:"warnings,omitempty"`
}

func (d validateDocument) schema() string       { return "hbackup.config.validate/1" }
func (d validateDocument) lines() ([]part, any) { return nil, d }

func (d validateDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{})
	t.Row(d.File + " is valid. Checked, without reaching anything:")
	list := ui.NewTable(ui.Column{}, ui.Column{})
	for _, c := range d.Checked {
		list.Row("-", c)
	}
	return append([]*ui.Table{t, list}, warningTable(d.Warnings)...)
}

func warningsOf(cfg *config.Config) []string {
	var all []string
	for _, w := range cfg.Warnings {
		all = append(all, w.String())
	}
	return all
}

func warningTable(warnings []string) []*ui.Table {
	if len(warnings) == 0 {
		return nil
	}
	t := ui.NewTable(ui.Column{}, ui.Column{})
	for _, w := range warnings {
		t.Row("warning:", w)
	}
	return []*ui.Table{t}
}
