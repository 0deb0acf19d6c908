// Package backup is the verb that turns tables of a living cluster into images
// in a location.
//
// A run is: record the request, take its lease, and then per table: take the
// table's lease, snapshot by RPC, plan from the snapshot's manifest, copy what the location lacks, commit
// the image, delete the snapshot. At the end the run's record is committed. Each
// step can be killed and run again with the same request id.
package backup

import (
	"context"
	"log/slog"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// Request says what is to be backed up.
type Request struct {
	ID      hbackup.RequestID // running again with the same one continues the same run
	Cluster hbackup.ClusterName
	// Either the tables are named one by one, or Selection chooses among those that
	// exist when the run begins, or an image is made of a snapshot that somebody has
	// taken, which stays.
	Tables       []hbackup.TableName
	Selection    *hbackup.Selection
	FromSnapshot string
}

// Options tune a run. The zero value of a field means its default.
type Options struct {
	Files         int           // files copied at a time, over all tables; default 8
	Tables        int           // tables worked on at a time; default 2
	Snapshots     int           // snapshots that HBase takes at a time for the run; default 2
	SnapshotTTL   time.Duration // after which HBase drops a forgotten snapshot of ours; default 72 h
	LeaseTTL      time.Duration // how long a dead run looks alive; default 30 s
	TableWait     time.Duration // how long a table is waited for that another run works on; default 1 min
	Journal       JournalBounds
	SkipChecksums bool // do not check HFile block checksums as bytes pass
	Init          bool // make the location ours although it holds other data
	Committer     committer.Protocol
	Reference     Reference // what becomes of files that only an earlier location holds; default ReferenceOwn
	Host          string    // for the record
	Writer        string    // version of hbackup, for the record
	Reporter      Reporter
	Log           *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Files <= 0 {
		o.Files = 8
	}
	if o.Tables <= 0 {
		o.Tables = 2
	}
	if o.Snapshots <= 0 {
		o.Snapshots = 2
	}
	if o.SnapshotTTL <= 0 {
		o.SnapshotTTL = 72 * time.Hour
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = failpoint.LeaseTTL(30 * time.Second)
	}
	if o.TableWait <= 0 {
		o.TableWait = time.Minute
	}
	o.Journal = o.Journal.withDefaults()
	if o.Reporter == nil {
		o.Reporter = silent{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Source is the cluster that is backed up.
type Source struct {
	Master Master
	FS     rootfs.FS
	Root   string // path of HBase's root directory in FS
}

// Master is what a backup asks of HBase; rpc.Client does it.
type Master interface {
	ClusterID() string
	Version(ctx context.Context) (rpc.Version, error)
	// TableNames lists what the filter lets pass, ordered by name.
	TableNames(ctx context.Context, f rpc.TableFilter) ([]hbackup.TableName, error)
	// TableState fails with KindNotFound for a missing table.
	TableState(ctx context.Context, t hbackup.TableName) (rpc.TableState, error)
	Namespaces(ctx context.Context) ([]rpc.Namespace, error)
	// Snapshot returns when the snapshot is complete. One of that name that is
	// there already is KindExists.
	Snapshot(ctx context.Context, r rpc.SnapshotRequest) error
	Snapshots(ctx context.Context) ([]rpc.SnapshotInfo, error)
	// DeleteSnapshot counts a missing snapshot as deleted.
	DeleteSnapshot(ctx context.Context, name string) error
}

// Target is where the images go.
type Target struct {
	Location storage.Store // the location itself
	Name     string        // its name in the configuration
	// Earlier are the other locations of the cluster's history. They are asked which
	// tables the last run of a selection had and, with ReferenceAny, which files they
	// hold.
	Earlier []catalog.Place
}

// Reporter is told how a run goes on. Calls come from many goroutines.
type Reporter interface {
	Stage(t hbackup.TableName, stage string)
	// Expect adds to what is to be done, Done to what is done; reused files were
	// in the location already.
	Expect(t hbackup.TableName, files int, bytes int64)
	Done(t hbackup.TableName, files int, bytes int64, reused bool)
}

type silent struct{}

func (silent) Stage(hbackup.TableName, string)          {}
func (silent) Expect(hbackup.TableName, int, int64)     {}
func (silent) Done(hbackup.TableName, int, int64, bool) {}

// The named steps of a run, in order. Tests kill the process at each.
const (
	StepStart           failpoint.Step = "backup.start"
	StepJobRecorded     failpoint.Step = "backup.job-recorded"
	StepLeaseTaken      failpoint.Step = "backup.lease-taken"
	StepSnapshotTaken   failpoint.Step = "backup.snapshot-taken"
	StepPlanned         failpoint.Step = "backup.planned"
	StepFileCopied      failpoint.Step = "backup.file-copied"
	StepFilesCopied     failpoint.Step = "backup.files-copied"
	StepSnapshotWritten failpoint.Step = "backup.snapshot-files-written"
	StepImageCommitted  failpoint.Step = "backup.image-committed"
	StepSnapshotDeleted failpoint.Step = "backup.snapshot-deleted"
	StepRunCommitted    failpoint.Step = "backup.run-committed"
	StepJobFinished     failpoint.Step = "backup.job-finished"
)

// Steps lists them all.
var Steps = []failpoint.Step{StepStart, StepJobRecorded, StepLeaseTaken, StepSnapshotTaken, StepPlanned, StepFileCopied,
	StepFilesCopied, StepSnapshotWritten, StepImageCommitted, StepSnapshotDeleted, StepRunCommitted, StepJobFinished}
