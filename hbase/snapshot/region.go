package snapshot

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strconv"

	"hbackup"
)

// mobStartKey is the start key of the dummy region that holds a table's MOB files.
const mobStartKey = ".mob"

// AppendRegionName appends HBase's full name of a region, without the encoded
// name at its end: "<table>,<start key>,<region id>", and "_%04X" for a replica
// other than the primary.
func AppendRegionName(dst []byte, table hbackup.TableName, startKey []byte, id uint64, replica int32) []byte {
	if table.Namespace != hbackup.DefaultNamespace {
		dst = append(dst, table.Namespace...)
		dst = append(dst, ':')
	}
	dst = append(dst, table.Qualifier...)
	dst = append(dst, ',')
	dst = append(dst, startKey...)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, id, 10)
	if replica > 0 {
		dst = fmt.Appendf(dst, "_%04X", replica)
	}
	return dst
}

// EncodeRegionName gives the region's encoded name: the MD5 of its full name in
// hexadecimal. It is the name of the region's directory.
func EncodeRegionName(table hbackup.TableName, startKey []byte, id uint64, replica int32) hbackup.EncodedRegion {
	var buf [256]byte
	return encodeName(AppendRegionName(buf[:0], table, startKey, id, replica))
}

func encodeName(name []byte) hbackup.EncodedRegion {
	sum := md5.Sum(name)
	var digits [2 * md5.Size]byte
	hex.Encode(digits[:], sum[:])
	return hbackup.EncodedRegion(digits[:])
}

// MOBRegion gives the encoded name of the dummy region of the table's MOB files.
func MOBRegion(table hbackup.TableName) hbackup.EncodedRegion {
	return EncodeRegionName(table, []byte(mobStartKey), 0, 0)
}

// IsMOB reports whether this is the dummy region that holds the table's MOB files.
func (r *Region) IsMOB() bool { return string(r.StartKey) == mobStartKey && r.ID == 0 }

// NumFiles counts the entries of the region, references and links included.
func (r *Region) NumFiles() int {
	n := 0
	for i := range r.Families {
		n += len(r.Families[i].Files)
	}
	return n
}

// NumFiles counts the entries of the manifest; one target may have several.
func (m *Manifest) NumFiles() int {
	n := 0
	for i := range m.Regions {
		n += m.Regions[i].NumFiles()
	}
	return n
}
