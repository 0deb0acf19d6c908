package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/check"
	"hbackup/config"
	"hbackup/internal/ui"
)

// clusterChecker looks at everything that backups and restores of a cluster
// depend on.
type clusterChecker interface {
	Check(context.Context, *config.Cluster) []check.Item
}

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "look whether clusters and locations can be reached and used",
		Description: `
Looks at all that a backup or restore depends on: HBase, its file system, the
target and the earlier locations. Each item is OK, WARNING or FAILED, with what
to do. Nothing is changed but one small object that is written to the target and
removed again. A failed item gives the exit code of its cause.`,
		UsageText: `
hbackup check
hbackup check --cluster prod -o json`,
		Flags:  []cli.Flag{clusterFlag("`NAME` of the cluster (default: all)")},
		Action: p.check,
	}
}

func (p *program) check(c *cli.Context) error {
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
		d := checkDocument{Status: check.OK, Items: []checkItem{}}
		for _, cl := range clusters {
			for _, item := range s.services.Check(ctx, cl) {
				d.add(s, cl, item)
			}
		}
		if wasInterrupted(ctx) {
			return errInterrupted
		}
		if err := s.emit(d); err != nil {
			return err
		}
		return d.err()
	})
}

// checkDocument is the result of check.
type checkDocument struct {
	Status check.Status `json:"status"` // the gravest of the items
	Items  []checkItem  `json:"items"`
}

type checkItem struct {
	Cluster hbackup.ClusterName `json:"cluster"`
	Name    string              `json:"name"`
	Status  check.Status        `json:"status"`
	Detail  string              `json:"detail"`
	Hint    string              `json:"hint,omitempty"`
	err     error
}

func (d *checkDocument) add(s *session, cl *config.Cluster, i check.Item) {
	d.Items = append(d.Items, checkItem{cl.Name, i.Name, i.Status, s.plain(i.Detail), s.plain(i.Hint), i.Err})
	if i.Status == check.Failed || i.Status == check.Warning && d.Status == check.OK {
		d.Status = i.Status
	}
}

// err gives the outcome: failures of one kind give that kind, others a failure.
func (d checkDocument) err() error {
	var failed []string
	kinds := map[hbackup.Kind]bool{}
	kind := hbackup.KindOther
	for _, i := range d.Items {
		if i.Status == check.Failed {
			failed = append(failed, string(i.Cluster)+": "+i.Name)
			kind = hbackup.KindOf(i.err)
			kinds[kind] = true
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if len(kinds) > 1 {
		kind = hbackup.KindOther
	}
	return hbackup.Errorf("check", "", kind, "failed: %s", strings.Join(failed, ", "))
}

func (d checkDocument) schema() string { return "hbackup.check/1" }

func (d checkDocument) lines() ([]part, any) {
	var parts []part
	for _, i := range d.Items {
		parts = append(parts, part{"item", i})
	}
	return parts, struct {
		Status check.Status `json:"status"`
		Count  int          `json:"count"`
	}{d.Status, len(d.Items)}
}

func (d checkDocument) table(nowFunc) []*ui.Table {
	t := ui.NewTable(ui.Column{Name: "cluster"}, ui.Column{Name: "item"}, ui.Column{Name: "status"}, ui.Column{Name: "detail"})
	for _, i := range d.Items {
		t.Row(string(i.Cluster), i.Name, string(i.Status), i.Detail)
		if i.Hint != "" {
			t.Row("", "", "", "hint: "+i.Hint)
		}
	}
	return []*ui.Table{t}
}
