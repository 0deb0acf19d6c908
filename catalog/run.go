package catalog

import (
	"time"

	"hbackup"
)

// RunFormat is the version of run and job records that is written, and the newest that is read.
const RunFormat = 1

// State is what became of a run.
type State string

const (
	StateRunning  State = "running"  // its lease is live
	StateComplete State = "complete" // every table has its image
	StatePartial  State = "partial"  // some tables have none
	StateFailed   State = "failed"   // it ended without an image, or died; run it again with its request id
)

// Run is the record of a backup: the group of its images. It is written once,
// when the run has reached its end with at least one image.
type Run struct {
	Format       int                 `json:"format"`
	ID           hbackup.BackupID    `json:"backup"`
	Request      hbackup.RequestID   `json:"request"`
	Cluster      hbackup.ClusterName `json:"cluster"`
	ClusterID    string              `json:"cluster_id"`
	HBaseVersion string              `json:"hbase_version"`
	State        State               `json:"state"`
	Started      time.Time           `json:"started"`
	Finished     time.Time           `json:"finished"`
	Host         string              `json:"host"`
	Writer       string              `json:"writer"` // version of hbackup
	// Selection chose the tables, unless they were named one by one.
	Selection *hbackup.Selection `json:"selection,omitempty"`
	Tables    []TableRun         `json:"tables"`
	// Committer is the protocol by which the files became visible, "" in records of
	// versions that had only one.
	Committer string `json:"committer,omitempty"`
	// Fence is the generation of the run's lease under which the record was made; see
	// Header.Fence.
	Fence int64 `json:"fence,omitempty"`
	// Gone are the tables that the last run of the same selection had and this one
	// has not, because they do not exist any more or the selection changed.
	Gone []hbackup.TableName `json:"gone,omitempty"`
}

// TableRun is what became of one table of a run.
type TableRun struct {
	Table hbackup.TableName `json:"table"`
	// Image is set when the table was backed up.
	Image            hbackup.ImageID `json:"image,omitempty"`
	SnapshotStarted  time.Time       `json:"snapshot_started,omitzero"`
	SnapshotFinished time.Time       `json:"snapshot_finished,omitzero"`
	Totals           Totals          `json:"totals"`
	// CopiedFiles and CopiedBytes were not in the location before.
	CopiedFiles int   `json:"copied_files"`
	CopiedBytes int64 `json:"copied_bytes"`
	// ReplacedFiles of them were there, damaged, and were put in order.
	ReplacedFiles int `json:"replaced_files,omitempty"`
	// References are the image's own: locations that hold files of it.
	References []Reference `json:"references,omitempty"`
	// Caveat is the image's own.
	Caveat *Failure `json:"caveat,omitempty"`
	// Failure says why there is no image.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is an error as it is stored and shown. Its message is bounded, so that
// a record can always be written.
type Failure struct {
	Kind    hbackup.Kind `json:"kind"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

// maxFailureBytes bounds messages in records.
const maxFailureBytes = 2000

// NewFailure makes a Failure of an error; nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Kind: hbackup.KindOf(err), Message: cut(err.Error()), Hint: cut(hbackup.HintOf(err))}
}

// Err turns the stored failure into an error again.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	e := hbackup.Errorf("", "", f.Kind, "%s", f.Message)
	e.Hint = f.Hint
	return e
}

func cut(s string) string {
	if len(s) > maxFailureBytes {
		return s[:maxFailureBytes] + "…"
	}
	return s
}

// TotalsOf adds up the images of the run.
func (r *Run) TotalsOf() (t Totals) {
	for _, tr := range r.Tables {
		t.Regions += tr.Totals.Regions
		t.Files += tr.Totals.Files
		t.Bytes += tr.Totals.Bytes
		t.Cells += tr.Totals.Cells
	}
	return t
}

// Job is the record of a request, created before anything else is written. It
// binds the request id to a run and to what was asked, so that running again
// continues the same run, and a request id cannot be used for two things.
type Job struct {
	Format  int                 `json:"format"`
	Request hbackup.RequestID   `json:"request"`
	Verb    string              `json:"verb"` // "backup" or "restore"
	Backup  hbackup.BackupID    `json:"backup"`
	Cluster hbackup.ClusterName `json:"cluster"`
	// Tables are in the order of their images' numbers. When Selection is set it
	// was what was asked, and they are what it came to at the beginning.
	Tables    []hbackup.TableName `json:"tables"`
	Selection *hbackup.Selection  `json:"selection,omitempty"`
	// FromSnapshot names the snapshot, not hbackup's own, that was asked for.
	FromSnapshot string `json:"from_snapshot,omitempty"`
	// Restore alone: which image goes where.
	Image         hbackup.ImageID     `json:"image,omitempty"`
	TargetCluster hbackup.ClusterName `json:"target_cluster,omitempty"`
	TargetTable   hbackup.TableName   `json:"target_table,omitzero"`

	// Digest is RequestDigest at the time of recording, "" in records of versions
	// without. What a try leaves for the next one bears it, too.
	Digest string `json:"request_digest,omitempty"`

	Created time.Time `json:"created"`
	Host    string    `json:"host"`
	Writer  string    `json:"writer"`
}

// JobDone is created when a request has reached its end. Of a backup the run
// record says the rest.
type JobDone struct {
	Format   int               `json:"format"`
	Request  hbackup.RequestID `json:"request"`
	Finished time.Time         `json:"finished"`
	State    State             `json:"state"`
}
