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
		o.LeaseTTL = time.Minute
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

// Master is what a restore asks of HBase.
type Master interface {
	// Cluster gives HBase's own id of the cluster and its version.
	Cluster(ctx context.Context) (id, version string, err error)
	// Namespaces lists the names of all name spaces.
	Namespaces(ctx context.Context) ([]string, error)
	// CreateNamespace makes one and waits until it is there. It is only called
	// for one that is not listed; one made since then is KindExists.
	CreateNamespace(ctx context.Context, name string, config map[string]string) error
	// TableState gives the state of a table; a missing one is KindNotFound.
	TableState(ctx context.Context, t hbackup.TableName) (TableState, error)
	// Regions lists the primary regions of a table as hbase:meta has them, split
	// parents left out. None is no error.
	Regions(ctx context.Context, t hbackup.TableName) ([]Region, error)
	// Clone makes a table that is not there from a snapshot and waits for the
	// end. It must never restore over a table. The same nonce again is the same
	// procedure. KindTimeout, KindUnavailable, KindThrottled, KindBusy,
	// KindInterrupted and KindOther mean that the outcome is not known; every
	// other kind that nothing was made and nothing runs.
	Clone(ctx context.Context, c Clone) error
	// DeleteSnapshot deletes a completed snapshot; a missing one is no error.
	DeleteSnapshot(ctx context.Context, name string) error
}

// Clone is an order to make a table from a snapshot.
type Clone struct {
	Snapshot string
	Table    hbackup.TableName
	Nonce    Nonce
	Sent     bool // an earlier run may have sent it with this nonce
}

// Nonce makes a repeated order the same procedure. Neither part is ever 0.
type Nonce struct{ Group, Value uint64 }

// TableState is whether a table serves, in HBase's words.
type TableState string

// The states of a table.
const (
	TableEnabled   TableState = "ENABLED"
	TableEnabling  TableState = "ENABLING"
	TableDisabled  TableState = "DISABLED"
	TableDisabling TableState = "DISABLING"
)

// Region is a region of a table on the cluster.
type Region struct {
	ID       uint64
	StartKey []byte
	EndKey   []byte
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
