package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/config"
	"hbackup/internal/ui"
)

// backupRunner backs tables of a cluster up to its target.
type backupRunner interface {
	Backup(context.Context, *config.Cluster, backup.Request, backup.Options) (backup.Result, error)
}

func (p *program) backupCommand() *cli.Command {
	return &cli.Command{
		Name:  "backup",
		Usage: "back up tables of a cluster to its target location",
		Description: `
Takes a snapshot of each table, copies the files that the target does not hold
yet, and commits one image per table. The tables stay online.

Tables are named one by one with --tables, or by a set of the configuration with
--table-set. Without either all tables are backed up that clusters.NAME.tables selects,
which are all tables unless it says otherwise; new ones are picked up on their
own. HBase's own tables are in no selection.

With --from-snapshot the backup is of a snapshot that somebody has taken, of its
table at its moment, whether or not the table still exists. hbackup does not delete
such a snapshot.

A named table that does not exist stops the backup before it begins. One that fails
later does not stop the others: then the backup is partial and the exit
code is 3. A run that was killed or interrupted is continued by the same command
with the same --request-id; one that is done is confirmed and exits with 0.`,
		UsageText: `
hbackup backup --cluster prod
hbackup backup --cluster prod --table-set billing
hbackup backup --cluster prod --tables ns:orders
hbackup backup --cluster prod --tables ns:orders,ns:customers --request-id nightly-2026-11-30
hbackup backup --cluster prod --from-snapshot before_upgrade`,
		Flags: []cli.Flag{
			clusterFlag("`NAME` of the cluster in the configuration (required)"),
			&cli.StringSliceFlag{Name: "tables", Usage: "`TABLES` to back up, separated by commas; may be repeated"},
			&cli.StringFlag{Name: "table-set", Usage: "`NAME` of the set of tables to back up, from sets in the configuration"},
			&cli.StringFlag{Name: "from-snapshot", Usage: "`SNAPSHOT` of the cluster to make the backup of, instead of one that is taken now; it stays"},
			initFlag("back up to the target although it holds other data and no hbackup.json"),
			requestIDFlag(),
		},
		Action: p.backup,
	}
}

func (p *program) backup(c *cli.Context) error {
	if err := p.arguments(c); err != nil {
		return err
	}
	if _, err := required(c, "cluster", "prod"); err != nil {
		return err
	}
	name, err := clusterName(c, "cluster")
	if err != nil {
		return err
	}
	tables, err := tableNames(c, "tables")
	if err != nil {
		return err
	}
	set := config.SetName(c.String("table-set"))
	if c.IsSet("table-set") {
		if err := set.Validate(); err != nil {
			return bad(c, "%v", err)
		}
		if c.IsSet("tables") {
			return bad(c, "--tables and --table-set are both given").WithHint("keep one of the two")
		}
	}
	from := c.String("from-snapshot")
	switch {
	case c.IsSet("from-snapshot") && from == "":
		return bad(c, "--from-snapshot is empty").WithHint("give the name of a snapshot, as HBase lists it")
	case from != "" && (c.IsSet("tables") || c.IsSet("table-set")):
		return bad(c, "--from-snapshot is given and tables are chosen as well").WithHint("a snapshot is of one table: leave --tables and --table-set out")
	}
	id, err := requestID(c, p.now())
	if err != nil {
		return err
	}
	return p.withSession(c, func(ctx context.Context, s *session) error {
		cl, err := s.cluster(name)
		if err != nil {
			return err
		}
		req := backup.Request{ID: id, Cluster: cl.Name, Tables: tables, FromSnapshot: from}
		if from != "" {
			s.log.Info("backup starts", "cluster", cl.Name, "snapshot", from, "target", cl.Target, "request", id)
		} else if len(tables) == 0 {
			chosen, err := selection(s.cfg, cl, set)
			if err != nil {
				return err
			}
			req.Selection = &chosen
			s.log.Info("backup starts", "cluster", cl.Name, "tables", chosen.String(), "target", cl.Target, "request", id)
		} else {
			s.log.Info("backup starts", "cluster", cl.Name, "tables", len(tables), "target", cl.Target, "request", id)
		}
		progress, stop := s.track()
		result, err := s.services.Backup(ctx, cl, req, backup.Options{
			Files:         s.cfg.Copy.Concurrency,
			Tables:        s.cfg.Copy.Tables,
			Snapshots:     cl.Snapshots,
			SnapshotTTL:   cl.SnapshotTTL,
			TableWait:     cl.TableWait,
			SkipChecksums: !s.cfg.Copy.VerifyHFileChecksums,
			Committer:     committer.Protocol(s.cfg.Locations[cl.Target].Committer),
			Reference:     backup.Reference(cl.Reference),
			Init:          c.Bool("init"),
			Host:          hostName(),
			Writer:        writer(),
			Reporter:      backupProgress{progress},
			Log:           s.log,
		})
		stop()
		if err != nil {
			return goOn(err, id)
		}
		if err := s.emit(newBackupDocument(result, cl)); err != nil {
			return err
		}
		return partial(result.Run)
	})
}

// selection is what a set of the configuration chooses, or the cluster itself.
func selection(cfg *config.Config, cl *config.Cluster, set config.SetName) (hbackup.Selection, error) {
	if set == "" {
		return cl.Selection(), nil
	}
	s, err := cfg.Set(set)
	if err != nil {
		return hbackup.Selection{}, err
	}
	return s.Selection(), nil
}

// goOn adds to an interruption how to continue.
func goOn(err error, id hbackup.RequestID) error {
	if hbackup.IsKind(err, hbackup.KindInterrupted) && hbackup.HintOf(err) == "" {
		return hbackup.E("", "", hbackup.KindInterrupted, err).WithHint("run the same command with --request-id %s to go on", id)
	}
	return err
}

// partial is the error of a run of which some tables failed.
func partial(run catalog.Run) error {
	if run.State != catalog.StatePartial {
		return nil
	}
	failed := 0
	for _, t := range run.Tables {
		if t.Failure != nil {
			failed++
		}
	}
	return hbackup.Errorf("backup", string(run.ID), hbackup.KindPartial, "%d of %s failed", failed, ui.Plural(len(run.Tables), "table", "tables")).
		WithHint("the other tables are backed up; see the table's own error, then back it up with a new request")
}

// backupProgress translates what a backup reports.
type backupProgress struct{ *ui.Progress }

func (b backupProgress) Stage(t hbackup.TableName, stage string) { b.Progress.Stage(t.String(), stage) }
func (b backupProgress) Expect(t hbackup.TableName, files int, bytes int64) {
	b.Progress.Expect(t.String(), files, bytes)
}
func (b backupProgress) Done(t hbackup.TableName, files int, bytes int64, reused bool) {
	b.Progress.Done(t.String(), files, bytes, reused)
}

// backupDocument is the result of backup.
type backupDocument struct {
	AlreadyDone bool `json:"already_done"`
	runDocument
}

func newBackupDocument(r backup.Result, cl *config.Cluster) backupDocument {
	return backupDocument{AlreadyDone: r.AlreadyDone, runDocument: newRun(r.Run, string(cl.Target))}
}

func (d backupDocument) schema() string { return "hbackup.backup/1" }

func (d backupDocument) lines() ([]part, any) {
	parts := d.tableLines()
	d.Tables = nil
	return parts, d
}

func (d backupDocument) table(now nowFunc) []*ui.Table {
	head := d.head(now)
	if d.AlreadyDone {
		head.Row("note", "already done by an earlier run of this request")
	}
	return []*ui.Table{head, d.tableTable()}
}

type nowFunc = func() time.Time
