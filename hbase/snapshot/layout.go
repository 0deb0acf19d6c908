package snapshot

import (
	"path"
	"strings"

	"hbackup"
)

// Names below an HBase root directory. A location's cluster directory has the
// same layout, so these serve both.
const (
	SnapshotsDir        = ".hbase-snapshot"  // completed snapshots, one directory each
	WorkDir             = ".tmp"             // below SnapshotsDir: snapshots being taken
	InfoFile            = ".snapshotinfo"    // SnapshotDescription
	ManifestFile        = "data.manifest"    // SnapshotDataManifest
	RegionManifestStart = "region-manifest." // and the encoded region name: SnapshotRegionManifest
)

// SnapshotDir gives the directory of a completed snapshot below the root directory.
func SnapshotDir(root, name string) string { return path.Join(root, SnapshotsDir, name) }

// SnapshotWorkDir gives the directory of a snapshot while HBase takes it.
func SnapshotWorkDir(root, name string) string { return path.Join(root, SnapshotsDir, WorkDir, name) }

// DataPath gives where the file lives while a region uses it.
func DataPath(root string, t Target) string { return under(root, "data/", t) }

// ArchivePath gives where the file lives once no region uses it.
func ArchivePath(root string, t Target) string { return under(root, "archive/data/", t) }

// MOBPath gives where a MOB file lives while it is not archived.
func MOBPath(root string, t Target) string { return under(root, "mobdir/data/", t) }

// TempPath gives where the file lives while its table is being made or deleted.
func TempPath(root string, t Target) string { return under(root, ".tmp/data/", t) }

func under(root, dir string, t Target) string {
	return strings.TrimSuffix(root, "/") + "/" + dir + t.relPath()
}

// relPath gives "<ns>/<table>/<region>/<family>/<file>".
func (t Target) relPath() string {
	return t.Table.Path() + "/" + string(t.Region) + "/" + string(t.Family) + "/" + t.File
}

// String gives the path of the target below an archive's data directory.
func (t Target) String() string { return t.relPath() }

// Validate reports whether every part of the target is what HBase allows, so
// that its paths stay below the root directory.
func (t Target) Validate() error {
	if err := t.Table.Validate(); err != nil {
		return err
	}
	if err := t.Region.Validate(); err != nil {
		return err
	}
	if err := t.Family.Validate(); err != nil {
		return err
	}
	n, err := ParseFileName(t.File)
	if err == nil && (n.IsLink() || n.IsReference()) {
		err = notAFile(t.File)
	}
	return err
}

// ValidateName reports why a snapshot cannot have the name. HBase's servers do
// not check it, so a bad one leaves litter or a stuck procedure there; the rule
// is the one for table qualifiers.
func ValidateName(name string) error {
	if len(name) > 250 {
		return errNameTooLong
	}
	return hbackup.TableName{Namespace: hbackup.DefaultNamespace, Qualifier: name}.Validate()
}
