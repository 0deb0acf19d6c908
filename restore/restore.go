// Package restore is the verb that turns an image in a location into a table of
// a living cluster.
//
// A restore makes a snapshot on the cluster whose files lie in a place of its
// own in the cluster's archive, asks HBase to clone it, checks the clone and
// drops the snapshot; HBase's back references keep the files from then on. The
// order is dictated by HBase's cleaners, which run all the time and delete from
// the archive what no complete snapshot names: data.manifest, at once
// .snapshotinfo, then the files. An incomplete snapshot directory is never left
// behind: it would stop all cleaning on that cluster.
//
// Each step can be killed and run again with the same request id. What is
// needed to go on is on the cluster itself, as long as it means something: the
// creation time in the snapshot names the attempt, and the attempt names its
// staging place and the nonce of the clone.
package restore

import (
	"context"
	"log/slog"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/internal/failpoint"
)

// Request says what is restored and under which name.
type Request struct {
	ID    hbackup.RequestID // running again with the same one continues the same restore
	Image catalog.Found     // Place.Store is the source cluster's folder in the location
	As    hbackup.TableName // the table to make; zero: the image's own name

	CreateNamespace bool // make the table's name space, with the image's configuration, when it is missing
	AllowOlderHBase bool // restore to an HBase older than the source's; it may not read the files
}

// table gives the name of the table to make.
func (q Request) table() hbackup.TableName {
	if q.As.IsZero() {
		return q.Image.Table
	}
	return q.As
}

// Target is the cluster that the table is made on.
type Target struct {
	Name   hbackup.ClusterName
	Master Master
	FS     rootfs.FS
	Root   string // path of HBase's root directory in FS
}

// Options tune a restore. The zero value of a field means its default.
type Options struct {
	Files        int           // files copied at a time; default 8
	CloneTimeout time.Duration // how long the clone is waited for; default 1 h
	LeaseTTL     time.Duration // how long a dead run looks alive; default 1 min
	Host         string        // for the record
	Writer       string        // version of hbackup, for the record
	Reporter     Reporter
	Log          *slog.Logger

	wait func(context.Context, time.Duration) error // tests do not wait
}

func (o Options) withDefaults() Options {
	if o.Files <= 0 {
		o.Files = 8
	}
	if o.CloneTimeout <= 0 {
		o.CloneTimeout = time.Hour
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = failpoint.LeaseTTL(time.Minute)
	}
	if o.Reporter == nil {
		o.Reporter = silent{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.wait == nil {
		o.wait = wait
	}
	return o
}

// Master is what a restore asks of HBase; *rpc.Client has it.
type Master interface {
	Version(ctx context.Context) (rpc.Version, error)
	Namespaces(ctx context.Context) ([]rpc.Namespace, error)
	// CreateNamespace is only called for one that is not listed, as asking for
	// one that exists can block the master; one made since then is KindExists.
	CreateNamespace(ctx context.Context, name string, config map[string]string, nonce rpc.Nonce) error
	// TableState fails with KindNotFound for a missing table.
	TableState(ctx context.Context, t hbackup.TableName) (rpc.TableState, error)
	// Regions lists the primary regions of a table, split parents left out. None
	// is KindNotFound.
	Regions(ctx context.Context, t hbackup.TableName) ([]rpc.Region, error)
	// Clone makes a table that is not there and waits for the end. It never
	// restores over a table, and the same nonce again is the same procedure.
	Clone(ctx context.Context, r rpc.CloneRequest) error
	// DeleteSnapshot counts a missing snapshot as deleted.
	DeleteSnapshot(ctx context.Context, name string) error
}

// Reporter is told how a restore goes on. Calls come from many goroutines.
type Reporter interface {
	Stage(name string)
	// AddTotal adds to what is to be done, Done to what is done.
	AddTotal(bytes int64, files int)
	Done(bytes int64, files int)
}

type silent struct{}

func (silent) Stage(string)        {}
func (silent) AddTotal(int64, int) {}
func (silent) Done(int64, int)     {}

// Result is what a restore came to.
type Result struct {
	Request     hbackup.RequestID
	Image       hbackup.ImageID
	Table       hbackup.TableName
	AlreadyDone bool // the request had reached its end before

	Regions int   // of the new table
	Files   int   // that the table was made from
	Bytes   int64 // in them
	// CopiedFiles and CopiedBytes were copied by this run; the rest was on the
	// cluster already, left by an earlier run of the same request.
	CopiedFiles int
	CopiedBytes int64

	Started  time.Time
	Finished time.Time
	Notes    []string // what the operator should know
}

// The named steps of a restore, in order. Tests kill the process at each.
const (
	StepStart           failpoint.Step = "restore.start"
	StepJobRecorded     failpoint.Step = "restore.job-recorded"
	StepLeaseTaken      failpoint.Step = "restore.lease-taken"
	StepNamespaceMade   failpoint.Step = "restore.namespace-made"
	StepDirectoryMade   failpoint.Step = "restore.snapshot-directory-made"
	StepManifestWritten failpoint.Step = "restore.manifest-written"
	StepSnapshotWritten failpoint.Step = "restore.snapshot-written"
	StepFileOpened      failpoint.Step = "restore.file-opened"
	StepFileCopied      failpoint.Step = "restore.file-copied"
	StepFilesCopied     failpoint.Step = "restore.files-copied"
	StepFilesVerified   failpoint.Step = "restore.files-verified"
	StepCloned          failpoint.Step = "restore.cloned"
	StepCloneChecked    failpoint.Step = "restore.clone-checked"
	StepJobFinished     failpoint.Step = "restore.job-finished"
	StepSnapshotDeleted failpoint.Step = "restore.snapshot-deleted"
)

// Steps lists them all. StepNamespaceMade is only met when a name space is made.
var Steps = []failpoint.Step{StepStart, StepJobRecorded, StepLeaseTaken, StepNamespaceMade, StepDirectoryMade, StepManifestWritten,
	StepSnapshotWritten, StepFileOpened, StepFileCopied, StepFilesCopied, StepFilesVerified, StepCloned, StepCloneChecked, StepJobFinished, StepSnapshotDeleted}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
