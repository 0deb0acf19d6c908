package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/internal/ui"
)

// imageVerifier reads back what images name.
type imageVerifier interface {
	Verify(context.Context, []catalog.Found, verify.Options) (verify.Report, error)
}

func (p *program) verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "read a backup back and compare every size and digest",
		ArgsUsage: "ID",
		Description: `
Reads every file of a backup, or of one image, and compares it with the size and
digest in the manifest. All faults are shown, each with the full name of the
object. Damage gives exit code 14; files that could not be read for another
reason give that reason's code, and so does an image that is whole but that a
restore would refuse.`,
		UsageText: `
hbackup verify 20261130T230501.123Z-7f3k2m9q4x
hbackup verify 20261130T230501.123Z-7f3k2m9q4x.0000 --sizes-only`,
		Flags: []cli.Flag{
			clusterFlag("`NAME` of the cluster that was backed up (default: look in all)"),
			&cli.BoolFlag{Name: "sizes-only", Usage: "compare names and sizes by listing, and read no store file"},
		},
		Action: p.verify,
	}
}

func (p *program) verify(c *cli.Context) error {
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
		var images []catalog.Found
		for _, t := range found.run.Tables {
			if t.Image != "" {
				images = append(images, found.image(t))
			}
		}
		if len(images) == 0 {
			return hbackup.Errorf("verify", ref.String(), hbackup.KindNotFound, "there is no image to verify: the backup is %s", found.run.State).
				WithHint("hbackup describe %s shows its state", found.run.ID)
		}
		progress, stop := s.track()
		progress.Stage("", "read")
		report, err := s.services.Verify(ctx, images, verify.Options{
			Concurrency: s.cfg.Copy.Concurrency,
			SizesOnly:   c.Bool("sizes-only"),
			Expect:      func(files int, bytes int64) { progress.Expect("", files, bytes) },
			Done:        func(files int, bytes int64) { progress.Done("", files, bytes, false) },
		})
		stop()
		if err != nil {
			return err
		}
		d := newVerifyDocument(ref, found, report, c.Bool("sizes-only"))
		if err := s.emit(d); err != nil {
			return err
		}
		return d.err()
	})
}

// verifyDocument is the result of verify.
type verifyDocument struct {
	ID        string              `json:"id"`
	Cluster   hbackup.ClusterName `json:"cluster"`
	Location  string              `json:"location"`
	SizesOnly bool                `json:"sizes_only"`
	OK        bool                `json:"ok"`
	Images    int                 `json:"images"`
	Files     int                 `json:"files"`
	Bytes     int64               `json:"bytes"`
	// Without are the tables of the backup that have no image: there is nothing of
	// them to verify.
	Without []hbackup.TableName `json:"without_image,omitempty"`
	Faults  []faultDocument     `json:"faults"`
}

// faultDocument is one thing that is not as a committed manifest says.
type faultDocument struct {
	Image  hbackup.ImageID   `json:"image"`
	Table  hbackup.TableName `json:"table"`
	Path   string            `json:"path"`
	Kind   hbackup.Kind      `json:"kind"`
	Damage bool              `json:"damage"` // false: it could not be asked
	What   string            `json:"what"`
}

func newVerifyDocument(ref backupRef, found foundBackup, r verify.Report, sizesOnly bool) verifyDocument {
	d := verifyDocument{ID: ref.String(), Cluster: found.cluster.Name, Location: found.place.Name, SizesOnly: sizesOnly,
		OK: len(r.Faults) == 0, Images: r.Images, Files: r.Files, Bytes: r.Bytes, Faults: []faultDocument{}}
	for _, t := range found.run.Tables {
		if t.Image == "" {
			d.Without = append(d.Without, t.Table)
		}
	}
	for _, f := range r.Faults {
		d.Faults = append(d.Faults, faultDocument{f.Image, f.Table, f.Path, f.Kind, f.Damage(), ui.OneLine(f.What)})
	}
	return d
}

// err gives the outcome: damage outweighs everything else.
func (d verifyDocument) err() error {
	if d.OK {
		return nil
	}
	damaged := 0
	for _, f := range d.Faults {
		if f.Damage {
			damaged++
		}
	}
	if damaged > 0 {
		return hbackup.Errorf("verify", d.ID, hbackup.KindCorrupt, "%s of %s damaged", ui.Count(damaged), ui.Plural(d.Files, "object is", "objects are")).
			WithHint("do not rely on this backup: remove the damaged store files and back the table up again, which copies them anew if the cluster still has them, and look at the storage of location %s", d.Location)
	}
	unread := slices.DeleteFunc(slices.Clone(d.Faults), func(f faultDocument) bool { return f.Kind == hbackup.KindUnsupported })
	if len(unread) > 0 {
		return hbackup.Errorf("verify", d.ID, unread[0].Kind, "%s could not be read, the first one %s: %s", ui.Plural(len(unread), "object", "objects"), unread[0].Path, unread[0].What)
	}
	return hbackup.Errorf("verify", d.ID, hbackup.KindUnsupported, "nothing is damaged, but hbackup restore would refuse the image %s as it is: %s", d.Faults[0].Image, d.Faults[0].What).
		WithHint("make a new backup once the cause is gone; what is in this one can be imported by HBase's own ExportSnapshot")
}

func (d verifyDocument) schema() string { return "hbackup.verify/1" }

func (d verifyDocument) lines() ([]part, any) {
	var parts []part
	for _, f := range d.Faults {
		parts = append(parts, part{"fault", f})
	}
	return parts, struct {
		verifyDocument
		Faults *struct{} `json:"faults,omitempty"` // hides the list that the lines have shown
	}{verifyDocument: d}
}

func (d verifyDocument) table(nowFunc) []*ui.Table {
	head := ui.NewTable(ui.Column{}, ui.Column{})
	head.Row("verified", d.ID)
	head.Row("location", d.Location)
	what := "read and compared"
	if d.SizesOnly {
		what = "compared by size"
	}
	head.Row("looked at", ui.Plural(d.Files, "object", "objects")+" of "+ui.Plural(d.Images, "image", "images")+", "+ui.Bytes(d.Bytes)+" "+what)
	if len(d.Without) > 0 {
		var names []string
		for _, t := range d.Without {
			names = append(names, t.String())
		}
		head.Row("not in it", strings.Join(names, ", "))
	}
	if d.OK {
		head.Row("result", "all good")
		return []*ui.Table{head}
	}
	head.Row("result", ui.Plural(len(d.Faults), "fault", "faults"))
	t := ui.NewTable(ui.Column{Name: "kind"}, ui.Column{Name: "table"}, ui.Column{Name: "object"}, ui.Column{Name: "what"})
	for _, f := range d.Faults {
		t.Row(string(f.Kind), f.Table.String(), f.Path, f.What)
	}
	return []*ui.Table{head, t}
}
