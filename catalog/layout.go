// Package catalog knows what a location holds: the location's marker, the
// manifests of images, the records of runs and jobs, and how to read the history
// of a cluster from them. Storage is the truth; nothing here is cached.
//
// All keys but the marker's are relative to <location>/<cluster>, so that the
// folder is at the same time a root directory for HBase's own snapshot tools.
// docs/format.md describes every file.
package catalog

import (
	"fmt"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// Folders below <location>/<cluster>.
const (
	MarkerKey       storage.Key = "hbackup.json" // below the location itself
	archivePrefix               = "archive/data/"
	snapshotsPrefix             = ".hbase-snapshot/"
	imagesPrefix                = "images/"
	backupsPrefix               = "backups/"
	jobsPrefix                  = "jobs/"
	imageSuffix                 = ".image"
)

// HBase's own names for the two files of a snapshot.
const (
	SnapshotInfoFile = ".snapshotinfo"
	DataManifestFile = "data.manifest"
)

// ImageKey is where the manifest of an image is: the key whose creation commits it.
func ImageKey(t hbackup.TableName, id hbackup.ImageID) storage.Key {
	return storage.Key(imagesPrefix + t.Path() + "/" + string(id) + imageSuffix)
}

// SnapshotKey is where one of HBase's own snapshot files of the image is.
func SnapshotKey(id hbackup.ImageID, file string) storage.Key {
	return storage.Key(snapshotsPrefix + string(id) + "/" + file)
}

// BackupKey is where the commit record of a run is.
func BackupKey(id hbackup.BackupID) storage.Key {
	return storage.Key(backupsPrefix + string(id) + ".json")
}

// JobKey is where the record of a request is, JobDoneKey that of its result.
func JobKey(r hbackup.RequestID) storage.Key {
	return storage.Key(jobsPrefix + string(r) + "/job.json")
}

// JobDoneKey is created when the request has reached its end.
func JobDoneKey(r hbackup.RequestID) storage.Key {
	return storage.Key(jobsPrefix + string(r) + "/done.json")
}

// ArchivePrefix is the folder of a table's files, with a trailing '/'.
func ArchivePrefix(t hbackup.TableName) string { return archivePrefix + t.Path() + "/" }

// parseImageKey reads what ImageKey gives.
func parseImageKey(k storage.Key) (hbackup.TableName, hbackup.ImageID, error) {
	rest, ok := strings.CutPrefix(string(k), imagesPrefix)
	name, ok2 := strings.CutSuffix(rest, imageSuffix)
	parts := strings.Split(name, "/")
	if !ok || !ok2 || len(parts) != 3 {
		return hbackup.TableName{}, "", fmt.Errorf("%q is not the key of an image", string(k))
	}
	t := hbackup.TableName{Namespace: parts[0], Qualifier: parts[1]}
	id := hbackup.ImageID(parts[2])
	if err := t.Validate(); err != nil {
		return t, id, err
	}
	return t, id, id.Validate()
}

// parseBackupKey reads what BackupKey gives.
func parseBackupKey(k storage.Key) (hbackup.BackupID, error) {
	rest, ok := strings.CutPrefix(string(k), backupsPrefix)
	name, ok2 := strings.CutSuffix(rest, ".json")
	if !ok || !ok2 {
		return "", fmt.Errorf("%q is not the key of a backup", string(k))
	}
	id := hbackup.BackupID(name)
	return id, id.Validate()
}
