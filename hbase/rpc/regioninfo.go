package rpc

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strconv"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// metaTable is the table of regions, which has one region of a fixed name.
var metaTable = hbackup.TableName{Namespace: hbackup.SystemNamespace, Qualifier: "meta"}

const metaRegion = "hbase:meta,,1"

// RegionInfo is a region as HBase describes it.
type RegionInfo struct {
	Table    hbackup.TableName
	ID       int64  // the region's creation time in ms, as a rule
	StartKey []byte // inclusive; empty: the table's begin
	EndKey   []byte // exclusive; empty: the table's end
	Replica  int    // 0 is the primary
	Offline  bool
	Split    bool // a parent whose daughters serve instead
}

func regionInfo(p *hbpb.RegionInfo) RegionInfo {
	return RegionInfo{
		Table:    tableName(p.GetTableName()),
		ID:       int64(p.GetRegionId()),
		StartKey: p.GetStartKey(),
		EndKey:   p.GetEndKey(),
		Replica:  int(p.GetReplicaId()),
		Offline:  p.GetOffline(),
		Split:    p.GetSplit(),
	}
}

// prefix is the part of the name that the encoded name is the MD5 of.
func (r RegionInfo) prefix() []byte {
	b := append([]byte(r.Table.String()), ',')
	b = append(b, r.StartKey...)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.ID, 10)
	if r.Replica > 0 {
		b = fmt.Appendf(b, "_%04X", r.Replica)
	}
	return b
}

// Encoded gives the 32 hexadecimal digits that name the region's directory.
func (r RegionInfo) Encoded() hbackup.EncodedRegion {
	sum := md5.Sum(r.prefix())
	return hbackup.EncodedRegion(hex.EncodeToString(sum[:]))
}

// Name gives the full region name, "<table>,<start key>,<id>.<encoded>.".
func (r RegionInfo) Name() []byte {
	if r.Table == metaTable && r.Replica == 0 {
		return []byte(metaRegion)
	}
	return append(append(append(r.prefix(), '.'), r.Encoded()...), '.')
}

// Contains reports whether the row is in the region's range.
func (r RegionInfo) Contains(row []byte) bool {
	return bytes.Compare(row, r.StartKey) >= 0 && (len(r.EndKey) == 0 || bytes.Compare(row, r.EndKey) < 0)
}

// byName addresses a region in a call to a region server. These ignore the type
// and always take the value for the full name: the encoded name would give
// NotServingRegionException for ever.
func byName(name []byte) *hbpb.RegionSpecifier {
	return &hbpb.RegionSpecifier{Type: hbpb.RegionSpecifier_REGION_NAME.Enum(), Value: name}
}

// byEncodedName addresses a region in a call to the master, where the full name
// gives UnknownRegionException.
func byEncodedName(name hbackup.EncodedRegion) *hbpb.RegionSpecifier {
	return &hbpb.RegionSpecifier{Type: hbpb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(name)}
}
