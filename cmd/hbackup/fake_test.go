package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/bench"
	"hbackup/catalog"
	"hbackup/catalog/union"
	"hbackup/catalog/verify"
	"hbackup/check"
	"hbackup/config"
	"hbackup/restore"
	"hbackup/storage/lease"
)

func fakeNow() time.Time { return time.Date(2026, 12, 1, 2, 17, 1, 0, time.UTC) }

// at gives a moment of the fake run, counted from its start.
func at(d time.Duration) time.Time {
	return time.Date(2026, 11, 30, 23, 5, 1, 123e6, time.UTC).Add(d)
}

const (
	fakeID = hbackup.BackupID("20261130T230501.123Z-7f3k2m9q4x")
	oldID  = hbackup.BackupID("20261001T000000.000Z-0000000000")
)

var (
	orders    = hbackup.TableName{Namespace: "ns", Qualifier: "orders"}
	customers = hbackup.TableName{Namespace: "default", Qualifier: "customers"}
)

func completeRun() catalog.Run {
	return catalog.Run{
		Format: 1, ID: fakeID, Request: "nightly", Cluster: "prod", ClusterID: "0f4b", HBaseVersion: "2.6.4",
		State: catalog.StateComplete, Started: at(0), Finished: at(72*time.Second + 400*time.Millisecond), Host: "backup1", Writer: "v0.1.0",
		Tables: []catalog.TableRun{
			{Table: orders, Image: fakeID.Image(0), SnapshotStarted: at(time.Second), SnapshotFinished: at(3 * time.Second),
				Totals: catalog.Totals{Regions: 12, Files: 1234, Bytes: 5 << 30, Cells: 98765432}, CopiedFiles: 34, CopiedBytes: 150 << 20},
			{Table: customers, Image: fakeID.Image(1), SnapshotStarted: at(time.Second), SnapshotFinished: at(2 * time.Second),
				Totals: catalog.Totals{Regions: 1, Files: 1, Bytes: 1000, Cells: 10}, CopiedFiles: 1, CopiedBytes: 1000},
		},
	}
}

func partialRun() catalog.Run {
	r := completeRun()
	r.State = catalog.StatePartial
	r.Tables[1] = catalog.TableRun{Table: customers, Failure: &catalog.Failure{Kind: hbackup.KindCorrupt, Message: "copy hdfs://nn1:8020/hbase/data/x: block checksum\nis wrong", Hint: "run hbase hbck"}}
	return r
}

// fake is services that answer from memory.
type fake struct {
	run      catalog.Run
	holder   lease.Holder // who works on run
	done     bool         // the request had reached its end before
	err      error
	history  catalog.History
	stored   map[string]storedSizes
	report   verify.Report
	items    []check.Item
	target   check.TargetReport
	notes    []string
	block    bool // work until the context ends
	stubborn bool // ... and then not return
}

func (f *fake) connect(*session) (services, error) { return f, nil }
func (f *fake) Close() error                       { return nil }

// wait says that the work has begun, then waits for the end of the context.
func (f *fake) wait(ctx context.Context) error {
	if !f.block {
		return f.err
	}
	if dir := os.Getenv("STARTED"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "started"), nil, 0o600); err != nil {
			return err
		}
	}
	<-ctx.Done()
	if f.stubborn {
		if err := os.WriteFile(filepath.Join(os.Getenv("STARTED"), "stopping"), nil, 0o600); err != nil {
			return err
		}
		select {}
	}
	return hbackup.E("copy", "hdfs://nn1:8020/hbase/data/x", hbackup.KindOther, context.Cause(ctx))
}

func (f *fake) Backup(ctx context.Context, cl *config.Cluster, req backup.Request, opts backup.Options) (backup.Result, error) {
	opts.Reporter.Stage(orders, "copy")
	opts.Reporter.Expect(orders, 2, 2048)
	opts.Reporter.Done(orders, 1, 1024, false)
	if err := f.wait(ctx); err != nil {
		return backup.Result{}, err
	}
	r := f.run
	r.Request, r.Cluster = req.ID, cl.Name
	if r.Selection = req.Selection; r.Selection != nil {
		r.Gone = []hbackup.TableName{{Namespace: "ns", Qualifier: "dropped"}}
	}
	return backup.Result{Run: r, AlreadyDone: f.done}, nil
}

func (f *fake) Restore(ctx context.Context, cl *config.Cluster, req restore.Request, opts restore.Options) (restore.Result, error) {
	opts.Reporter.Stage("copy")
	opts.Reporter.AddTotal(2048, 2)
	opts.Reporter.Done(1024, 1)
	if err := f.wait(ctx); err != nil {
		return restore.Result{Notes: f.notes}, err
	}
	return restore.Result{Request: req.ID, Image: req.Image.ID, Table: req.As, AlreadyDone: f.done, Regions: 12, Files: 1234, Bytes: 5 << 30,
		CopiedFiles: 1234, CopiedBytes: 5 << 30, Started: at(0), Finished: at(65 * time.Second), Notes: f.notes}, nil
}

func (f *fake) History(context.Context, *config.Cluster) (catalog.History, error) {
	return f.history, f.err
}

func (f *fake) Info(_ context.Context, _ *config.Cluster, sizes bool) (clusterState, error) {
	state := clusterState{history: f.history}
	if sizes {
		state.stored = f.stored
	}
	return state, f.err
}

func (f *fake) FindBackup(_ context.Context, clusters []*config.Cluster, id hbackup.BackupID) (foundBackup, error) {
	if id != f.run.ID {
		return foundBackup{}, hbackup.Errorf("find backup", string(id), hbackup.KindNotFound, "no location of %s has it", clusterWords(clusters)).
			WithHint("hbackup list shows the backups")
	}
	cl := clusters[0]
	for _, c := range clusters {
		if c.Name == "prod" {
			cl = c
		}
	}
	return foundBackup{cl, catalog.Place{Name: "main"}, f.run, nil, f.holder}, nil
}

func (f *fake) ReadHead(_ context.Context, i catalog.Found) (catalog.Header, error) {
	return catalog.Header{ID: i.ID, Table: i.Table, Namespace: map[string]string{"quota": "7"}, Fence: 5,
		Parents: []hbackup.ImageID{oldID.Image(0)},
		Schema: &catalog.Schema{MoreFamilies: 2, Families: []catalog.FamilySchema{
			{Name: "d", Attributes: map[string]string{"VERSIONS": "3", "COMPRESSION": "ZSTD", "BLOOMFILTER": "ROW"}},
			{Name: "m", Attributes: map[string]string{"IS_MOB": "true"}}}}}, f.err
}

func (f *fake) Shared(_ context.Context, found foundBackup) (map[hbackup.ImageID]int64, error) {
	shared := map[hbackup.ImageID]int64{}
	for _, t := range found.run.Tables {
		if t.Image != "" {
			shared[t.Image] = t.Totals.Bytes / 2
		}
	}
	return shared, f.err
}

func (f *fake) Verify(ctx context.Context, _ []catalog.Found, opts verify.Options) (verify.Report, error) {
	opts.Expect(2, 2048)
	opts.Done(1, 1024)
	return f.report, f.wait(ctx)
}

func (f *fake) ValidateTarget(ctx context.Context, _ *config.Location, opts check.TargetOptions) (check.TargetReport, error) {
	opts.Expect(2)
	opts.Done(1)
	return f.target, f.wait(ctx)
}

func (f *fake) Check(context.Context, *config.Cluster) []check.Item { return f.items }

func (f *fake) BenchCommitter(ctx context.Context, _ *config.Location, o bench.Options, report func(bench.Protocol, string)) ([]bench.Result, error) {
	report(o.Protocols[0], "write")
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	var all []bench.Result
	for i, p := range o.Protocols {
		if p == bench.Magic && f.done { // a store without uploads
			all = append(all, bench.Result{Protocol: p, Unsupported: "the store has no uploads that could be held open"})
			continue
		}
		n := int64(len(o.Protocols) - i)
		phase := func(of int64) bench.Phase {
			requests := map[string]int64{"put": n * of}
			if n > 1 {
				requests["head"] = 1000 * (n - 1) * of
			}
			return bench.Phase{Time: time.Duration(n*n*of) * 12345 * time.Microsecond, Traffic: bench.Traffic{
				Requests: requests, Up: 15000 * of, Down: 512 * (n - 1), Copied: 25 << 20 * (n - 1)}}
		}
		all = append(all, bench.Result{Protocol: p, Write: phase(10), TaskCommit: phase(2), JobCommit: phase(1)})
	}
	return all, nil
}

// completeHistory is a history in which all is well.
func completeHistory() catalog.History {
	return catalog.History{Entries: []catalog.Entry{{Place: "main", Run: completeRun()}}}
}

// storedInMain is what the location main may store for the complete run.
func storedInMain() map[string]storedSizes {
	return map[string]storedSizes{"main": {all: union.Totals{Files: 2345, Bytes: 7 << 30, SharedFiles: 1200, SharedBytes: 4 << 30},
		tables: map[hbackup.TableName]union.Totals{
			orders:    {Files: 2344, Bytes: 7<<30 - 1000, SharedFiles: 1200, SharedBytes: 4 << 30},
			customers: {Files: 1, Bytes: 1000},
		}}}
}

// fakes are the services that scripts and golden tests choose from.
var fakes = map[string]*fake{
	"good": {
		run: completeRun(),
		history: catalog.History{Entries: []catalog.Entry{
			{Place: "old", Run: catalog.Run{ID: oldID, State: catalog.StateFailed}, Unreadable: hbackup.Errorf("read run", "file:///srv/backup/prod/backups/x.json", hbackup.KindCorrupt, "it is not JSON")},
			{Place: "main", Run: partialRun()},
			{Place: "main", Run: catalog.Run{ID: "20261201T010000.000Z-1111111111", Request: "now", Cluster: "prod", State: catalog.StateRunning,
				Started: time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC), Host: "backup2", Writer: "v0.1.0", Tables: []catalog.TableRun{{Table: orders}}}},
		}},
		report: verify.Report{Images: 2, Files: 1239, Bytes: 5<<30 + 1000},
		items: []check.Item{
			{Name: "hbase", Status: check.OK, Detail: "HBase 2.6.4, cluster id 0f4b"},
			{Name: "cleaners", Status: check.Warning, Detail: "1 snapshot directory is incomplete", Hint: "remove it"},
		},
		target: check.TargetReport{Committer: check.Committer{Name: "direct", Why: "objects can be deleted again"}, Items: []check.Item{
			{Name: "location", Status: check.OK, Detail: "s3://bucket/prefix is empty"},
			{Name: "conditional replace", Status: check.Absent, Detail: "the store ignores If-Match"},
			{Name: "lifecycle rules", Status: check.Warning, Detail: "the rules could not be read", Hint: "the right is s3:GetLifecycleConfiguration"},
			{Name: "create if absent", Status: check.OK, Detail: "3 cases"},
		}},
	},
	"well": {history: completeHistory(), stored: storedInMain()},
	"unknown sizes": {history: completeHistory(), stored: map[string]storedSizes{
		"main": {err: hbackup.Errorf("read image", "s3://bucket/prod/images/x.image", hbackup.KindCorrupt, "it was cut short")}}},
	"done":    {run: completeRun(), done: true},
	"partial": {run: partialRun()},
	"failed": {
		run:   completeRun(),
		err:   hbackup.E("restore", "ns:orders_r", hbackup.KindExists, errors.New("the table is there already")).WithHint("choose another name with --as"),
		notes: []string{"nothing is left on the cluster"},
	},
	"joined": {err: errors.Join(
		hbackup.Errorf("back up table", "ns:orders", hbackup.KindUnavailable, "the master is starting"),
		hbackup.Errorf("back up table", "customers", hbackup.KindNotFound, "there is no such table"))},
	"missing": {err: errors.Join(
		hbackup.Errorf("look up table", "ns:orders", hbackup.KindNotFound, "there is no such table"),
		hbackup.Errorf("look up table", "customers", hbackup.KindNotFound, "there is no such table"))},
	"multiline": {err: hbackup.E("take snapshot of", "ns:orders", hbackup.KindOther, errors.New("java.io.IOException: bad\n\tat org.apache\x1b[31m\nsecret hunter2hunter2"))},
	"damaged": {
		run: completeRun(),
		report: verify.Report{Images: 2, Files: 1239, Bytes: 5 << 30, Faults: []verify.Fault{
			{Image: fakeID.Image(0), Table: orders, Path: "s3://bucket/prod/archive/data/ns/orders/0123/f/abcd", Kind: hbackup.KindCorrupt, What: "the digest is crc64nvme:0, not crc64nvme:1"},
			{Image: fakeID.Image(0), Table: orders, Path: "s3://bucket/prod/archive/data/ns/orders/0123/f/cdef", Kind: hbackup.KindIncomplete, What: "it is missing"},
			{Image: fakeID.Image(0), Table: orders, Path: "s3://bucket/prod/archive/data/ns/orders/0123/f/ef01", Kind: hbackup.KindUnavailable, What: "the store does not answer"},
		}},
		items: []check.Item{
			{Name: "hbase", Status: check.OK, Detail: "HBase 2.6.4"},
			{Name: "target main", Status: check.Failed, Detail: "put s3://bucket/x: access denied", Hint: "look at the bucket's policy", Err: hbackup.Errorf("put", "s3://bucket/x", hbackup.KindDenied, "access denied")},
		},
		target: check.TargetReport{Committer: check.Committer{Name: "direct", Why: "objects can be deleted again"}, Items: []check.Item{
			{Name: "right s3:AbortMultipartUpload", Status: check.Failed, Detail: "access denied", Hint: "give it to the user", Err: hbackup.Errorf("abort", "s3://bucket/x", hbackup.KindDenied, "access denied")},
			{Name: "lifecycle rules", Status: check.Failed, Detail: "rule \"old\" deletes objects after 30 days", Hint: "take the rule away", Err: hbackup.Errorf("use", "s3://bucket", hbackup.KindRefused, "it deletes")},
			{Name: "listing", Status: check.Failed, Detail: "not reached", Err: hbackup.Errorf("list", "s3://bucket", hbackup.KindUnavailable, "not reached")},
		}},
		history: catalog.History{Entries: []catalog.Entry{{Place: "main", Run: completeRun()}},
			Unreachable: map[string]error{"old": hbackup.Errorf("list", "file:///srv/backup", hbackup.KindUnavailable, "the disk is not mounted")}},
	},
	"unread": {run: completeRun(), report: verify.Report{Images: 2, Files: 2, Faults: []verify.Fault{
		{Image: fakeID.Image(0), Table: orders, Path: "s3://bucket/x", Kind: hbackup.KindUnavailable, What: "the store does not answer"}}}},
	"failures": {items: []check.Item{
		{Name: "hbase", Status: check.Failed, Detail: "down", Err: hbackup.Errorf("", "", hbackup.KindUnavailable, "down")},
		{Name: "target main", Status: check.Failed, Detail: "denied", Err: hbackup.Errorf("", "", hbackup.KindDenied, "denied")}}},
	"running": {run: catalog.Run{ID: fakeID, State: catalog.StateRunning, Started: at(0), Tables: []catalog.TableRun{{Table: orders}}},
		holder: lease.Holder{Name: "run", Generation: 7, Owner: "backup1, request nightly", Acquired: at(0), Expires: at(90 * time.Second)}},
	"nothing":  {history: catalog.History{Unreachable: map[string]error{"main": hbackup.Errorf("list", "s3://bucket", hbackup.KindDenied, "access denied")}}},
	"empty":    {},
	"block":    {run: completeRun(), block: true},
	"stubborn": {run: completeRun(), block: true, stubborn: true},
}
