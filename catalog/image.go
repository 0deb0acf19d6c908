package catalog

import (
	"time"

	"hbackup"
	"hbackup/storage"
)

// Image is the manifest of one image: everything that verify and restore need to
// know, with the size and digest of each file. It is immutable once committed.
type Image struct {
	Header
	Files []File
}

// Header is the part of a manifest that is read without the list of files.
type Header struct {
	Format       int                 `json:"format"`
	ID           hbackup.ImageID     `json:"image"`
	Backup       hbackup.BackupID    `json:"backup"`
	Cluster      hbackup.ClusterName `json:"cluster"`
	ClusterID    string              `json:"cluster_id"`    // HBase's own id of the cluster
	HBaseVersion string              `json:"hbase_version"` // of the source
	Table        hbackup.TableName   `json:"table"`
	Disabled     bool                `json:"table_disabled,omitempty"` // the table was disabled: nothing was flushed
	// Namespace is the configuration of the table's name space, so that a
	// restore elsewhere can make it.
	Namespace map[string]string `json:"namespace_configuration,omitempty"`
	// Schema tells of the table's families; nil in images of versions that did not.
	Schema *Schema `json:"schema,omitempty"`
	// SnapshotStarted and SnapshotFinished bound the moment of each region's cut,
	// by the clocks of the master and the name node. Every region's content is
	// from between the two.
	SnapshotStarted  time.Time `json:"snapshot_started"`
	SnapshotFinished time.Time `json:"snapshot_finished"`
	SourceSnapshot   string    `json:"source_snapshot"`
	// Snapshot lists HBase's own snapshot files of this image in the location.
	Snapshot []SnapshotFile `json:"snapshot_files"`
	Totals   Totals         `json:"totals"`
	// Caveat says why a restore would refuse the image, though it is whole: its
	// regions were in a state that cannot be cloned safely.
	Caveat *Failure `json:"caveat,omitempty"`
	// Parents are the newest earlier images, of this table and of those that it was
	// cloned from, whose files this one was compared with. It needs none of them.
	Parents []hbackup.ImageID `json:"parents,omitempty"`
	// Fence is the generation of the table's lease under which the image was committed:
	// of two that held it one after the other the later one's is greater.
	Fence int64 `json:"fence,omitempty"`
	// References are the other locations that hold files of the image. An image
	// with any needs them to be restored, and is of FormatWithReferences.
	References []Reference `json:"references,omitempty"`
	Writer     string      `json:"writer"` // version of hbackup
}

// SnapshotFile is one of HBase's own snapshot files in the location.
type SnapshotFile struct {
	Name   string         `json:"name"`
	Size   int64          `json:"size"`
	Digest storage.Digest `json:"digest"`
}

// Totals count what the image holds. Files named more than once count once.
type Totals struct {
	Regions int   `json:"regions"`
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Cells   int64 `json:"cells"` // entries by the files' own trailers, all versions and markers
}

// File is one store file of an image: HFile or MOB file. The first four fields
// are those of the file itself (snapshot.Target), not of the entry that names it.
type File struct {
	Table  hbackup.TableName
	Region hbackup.EncodedRegion
	Family hbackup.Family
	Name   string
	Size   int64
	Digest storage.Digest
	Cells  int64 // -1 when the file was copied unread
	// Location is the id of the location that holds the bytes when it is not the
	// image's own (reference: any); "" else.
	Location string
}

// Key is where the file's bytes are: archive/data/<ns>/<table>/<region>/<family>/<file>.
func (f File) Key() storage.Key {
	return storage.Key(ArchivePrefix(f.Table) + string(f.Region) + "/" + string(f.Family) + "/" + f.Name)
}
