// Package snapshot reads and writes HBase's own snapshot files: .snapshotinfo
// and data.manifest (or, while a snapshot runs, one region-manifest per region).
// It knows what a store file's name means and where its bytes are. It talks to no
// server: it is given the cluster's file system.
package snapshot

import (
	"time"

	"hbackup"
)

// Type says how HBase took a snapshot (SnapshotDescription.Type).
type Type int32

const (
	TypeDisabled  Type = 0 // of a disabled table, by the master
	TypeFlush     Type = 1 // every region flushed first
	TypeSkipFlush Type = 2 // without flush: what is in memory is missing
)

// Description is the content of .snapshotinfo.
type Description struct {
	Name    string
	Table   hbackup.TableName
	Created time.Time // server clock, when the snapshot was asked for
	Type    Type
	Version int32 // layout; 2 is the only one that is read and written
	Owner   string
	TTL     time.Duration // 0: for ever
	Raw     []byte        // the bytes as read; nil when made by us
}

// Manifest is a snapshot: its description, the table's schema and every region
// with its store files. Strings may share one large backing array.
type Manifest struct {
	Description Description
	Schema      Schema
	Regions     []Region
	Raw         []byte // data.manifest as read; nil when it came from region manifests or was made by us
}

// Schema is the table descriptor. Raw is kept and written back unchanged, as it
// may hold fields of an HBase version that we do not know.
type Schema struct {
	Table    hbackup.TableName
	Families []FamilySchema
	Raw      []byte // TableSchema, protobuf
}

// FamilySchema is the part of a column family's descriptor that hbackup looks at.
type FamilySchema struct {
	Name       hbackup.Family
	Attributes map[string]string
}

// Region is one region of the table at the moment of the snapshot.
type Region struct {
	Encoded  hbackup.EncodedRegion
	ID       uint64 // region id: the time of its making, ms
	Table    hbackup.TableName
	StartKey []byte
	EndKey   []byte
	Offline  bool
	Split    bool // a split parent: its daughters hold references to its files
	Replica  int32
	Families []FamilyFiles
	RawInfo  []byte // RegionInfo, protobuf, as read
}

// FamilyFiles are the store files of one family in one region.
type FamilyFiles struct {
	Family hbackup.Family
	Files  []StoreFile
}

// StoreFile is one entry of a manifest.
type StoreFile struct {
	Name string
	Size int64      // of the file that holds the bytes; -1 when the manifest does not say
	Ref  *Reference // set for a reference to a half of a parent's file
}

// Reference is the half of a parent's file that a daughter still reads there.
type Reference struct {
	Top      bool   // the upper half (range TOP); else the lower
	SplitKey []byte // a KeyValue key: the first possible one on the split row
}

// Target is where the bytes of a store file belong: table, region and family of
// the file itself, not of the manifest entry that names it. The tuple never
// names other bytes, so it is the key under which a backup stores them.
type Target struct {
	Table  hbackup.TableName
	Region hbackup.EncodedRegion
	Family hbackup.Family
	File   string
	MOB    bool // lives under mobdir/ while it is not archived
}

// ArchivePath gives the path below a root directory under which HBase looks for
// the file once it is archived, and under which a location keeps it:
// archive/data/<ns>/<table>/<region>/<family>/<file>.
func (t Target) ArchivePath() string {
	return "archive/data/" + t.Table.Path() + "/" + string(t.Region) + "/" + string(t.Family) + "/" + t.File
}
