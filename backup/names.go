package backup

import (
	"strings"

	"hbackup"
)

// snapshotPrefix starts the name of every snapshot that hbackup takes of a
// table. The name goes on with the cluster and the image, so that a snapshot
// left behind by a run that died tells whose it is:
// hbackup.prod.20261130T230501.123Z-7f3k2m9q4x.0003.
const snapshotPrefix = "hbackup."

// snapshotName gives the name of the snapshot that an image is made from.
func snapshotName(c hbackup.ClusterName, id hbackup.ImageID) string {
	return snapshotPrefix + string(c) + "." + string(id)
}

// parseSnapshotName reads what snapshotName gives. Every other name is somebody
// else's snapshot.
func parseSnapshotName(name string) (hbackup.ClusterName, hbackup.ImageID, bool) {
	rest, ok := strings.CutPrefix(name, snapshotPrefix)
	cluster, id, ok2 := strings.Cut(rest, ".")
	c, i := hbackup.ClusterName(cluster), hbackup.ImageID(id)
	if !ok || !ok2 || c.Validate() != nil || i.Validate() != nil {
		return "", "", false
	}
	return c, i, true
}
