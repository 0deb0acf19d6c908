package restore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
)

// SnapshotPrefix starts the name of every snapshot that a restore makes on a
// cluster. The name goes on with the request id and 16 hexadecimal digits that
// stand for the image and the table, so that two requests that happen to have
// the same id, of two source clusters, never meet:
// hbackup-restore.nightly-check.5f0c1d2e3a4b5c6d.
const SnapshotPrefix = "hbackup-restore."

// identity is what a restore is, on whatever machine and however often it runs.
type identity struct {
	request hbackup.RequestID
	sum     [sha256.Size]byte
}

func identityOf(request hbackup.RequestID, image hbackup.ImageID, cluster hbackup.ClusterName, table hbackup.TableName) identity {
	// No part can hold a line feed.
	text := fmt.Sprintf("hbackup restore\n%s\n%s\n%s\n%s:%s", request, image, cluster, table.Namespace, table.Qualifier)
	return identity{request, sha256.Sum256([]byte(text))}
}

// ofJob gives the identity of a recorded restore.
func ofJob(j catalog.Job) identity {
	return identityOf(j.Request, j.Image, j.TargetCluster, j.TargetTable)
}

// snapshot gives the name of the snapshot on the cluster.
func (i identity) snapshot() string {
	return SnapshotPrefix + string(i.request) + "." + hex.EncodeToString(i.sum[:8])
}

// ParseSnapshotName gives the request that a snapshot of a restore belongs to;
// ok is false for every other snapshot.
func ParseSnapshotName(name string) (request hbackup.RequestID, ok bool) {
	rest, ok := strings.CutPrefix(name, SnapshotPrefix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 {
		return "", false
	}
	digits, err := hex.DecodeString(rest[dot+1:])
	request = hbackup.RequestID(rest[:dot])
	return request, err == nil && len(digits) == 8 && request.Validate() == nil
}

// attempt is one try of a restore, from the making of its snapshot to the
// snapshot's end. A try that finds the snapshot of another that was killed goes
// on with that attempt; one that finds none makes a new one, so that nothing of
// an attempt that failed, neither a file nor an answer of the master, is ever
// taken for its own.
type attempt struct {
	id      identity
	created time.Time // in .snapshotinfo, milliseconds
}

func (a attempt) sum() [sha256.Size]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(a.id.sum[:], uint64(a.created.UnixMilli())))
}

// job gives the name of the attempt's staging place: a legal table qualifier
// without '-'.
func (a attempt) job() string {
	s := a.sum()
	return "r" + hex.EncodeToString(s[:15])
}

// nonce gives the nonce of the attempt's clone. Neither part is 0, which would
// mean "none".
func (a attempt) nonce() rpc.Nonce {
	s := a.sum()
	return rpc.Nonce{Group: binary.BigEndian.Uint64(s[16:]) | 1, Value: binary.BigEndian.Uint64(s[24:]) | 1}
}

// regionID gives the id of every region of the attempt's table.
func (a attempt) regionID() uint64 { return uint64(a.created.UnixMilli()) }

// LeaseName names the lease that a restore holds in its location while it works.
func LeaseName(request hbackup.RequestID) string { return "restore-" + string(request) }
