package backup

import (
	"context"
	"slices"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
)

// selectTables finds out what the request's selection comes to. A request that
// was begun before keeps what it came to then: tables that have been dropped since
// fail one by one, new ones wait for the next run.
func (r *run) selectTables(ctx context.Context) error {
	job, err := catalog.ReadJob(ctx, r.store, r.req.ID)
	switch {
	case err == nil:
		if err := r.sameAs(job); err != nil {
			return err
		}
		r.tables = job.Tables
	case hbackup.IsKind(err, hbackup.KindNotFound):
		all, err := r.src.Master.TableNames(ctx, rpc.TableFilter{})
		if err != nil {
			return hbackup.E("list tables of cluster", string(r.req.Cluster), hbackup.KindOther, err)
		}
		if r.tables = r.req.Selection.Of(all); len(r.tables) == 0 {
			return hbackup.Errorf("select tables of cluster", string(r.req.Cluster), hbackup.KindNotFound, "%s matches none of the %d tables", r.req.Selection, len(all)).
				WithHint("check the patterns and their name spaces; nothing was backed up")
		}
	default:
		return err
	}
	return nil
}

// compareWithLast reports a selection that shrank: a table that was dropped, or
// that somebody excluded, is not backed up any more, and nobody should have to
// find out when it is wanted back. That the last run cannot be read stops nothing.
func (r *run) compareWithLast(ctx context.Context) {
	if r.job.Selection == nil {
		return
	}
	var last catalog.Run
	places := append([]catalog.Place{{Name: "target", Store: r.store}}, r.earlier...)
	for _, p := range places {
		run, err := catalog.LastRunOf(ctx, p.Store, r.job.Selection.Set)
		switch {
		case err == nil:
			if run.ID > last.ID {
				last = run
			}
		case !hbackup.IsKind(err, hbackup.KindNotFound):
			r.opts.Log.Warn("the last run of this selection may be in a location that cannot be read; whether it had more tables is not known", "location", p.Store.Location(), "error", err)
		}
	}
	r.gone = missingFrom(last.Tables, r.job.Tables)
	if len(r.gone) > 0 {
		r.opts.Log.Warn("tables of the last run of this selection are not in this one", "selection", r.job.Selection.String(), "last", last.ID, "tables", hbackup.FirstTables(r.gone, 10))
	}
}

// missingFrom gives the tables of an earlier run that are not among those of this one.
func missingFrom(last []catalog.TableRun, now []hbackup.TableName) []hbackup.TableName {
	var gone []hbackup.TableName
	for _, t := range last {
		if !slices.Contains(now, t.Table) {
			gone = append(gone, t.Table)
		}
	}
	return gone
}
