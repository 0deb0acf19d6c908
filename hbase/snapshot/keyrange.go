package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// maxRowLen is the longest row HBase allows (a Java short).
const maxRowLen = math.MaxInt16

// SplitRow gives the row at which the file is split: the top half begins with it.
// SplitKey must be the first possible key on that row (row length, row, no
// family, the latest timestamp, the highest type), or the halves would meet
// inside a row, which HBase never makes.
func (r *Reference) SplitRow() ([]byte, error) {
	k := r.SplitKey
	if len(k) < 2 {
		return nil, fmt.Errorf("the split key is %d bytes long", len(k))
	}
	n := int(binary.BigEndian.Uint16(k))
	if n > maxRowLen || len(k) != 2+n+1+8+1 {
		return nil, fmt.Errorf("the split key %q is not the first key of a row", k)
	}
	rest := k[2+n:]
	if rest[0] != 0 || binary.BigEndian.Uint64(rest[1:]) != math.MaxInt64 || rest[9] != 0xFF {
		return nil, fmt.Errorf("the split key %q is not the first key of a row", k)
	}
	return k[2 : 2+n], nil
}

// SplitKeyOf gives the SplitKey for a split at the row.
func SplitKeyOf(row []byte) []byte {
	k := binary.BigEndian.AppendUint16(make([]byte, 0, len(row)+12), uint16(len(row)))
	k = append(k, row...)
	k = append(k, 0)
	k = binary.BigEndian.AppendUint64(k, math.MaxInt64)
	return append(k, 0xFF)
}

// keyRange is the rows from start (inclusive) to end (exclusive). An empty start
// is the first row; an empty end means no bound. It is never written for a range
// without rows: those functions give ok = false instead.
type keyRange struct{ start, end []byte }

func (r *Region) keys() keyRange { return keyRange{r.StartKey, r.EndKey} }

// half gives the rows that the reference shows of its file.
func (r *Reference) half() (keyRange, error) {
	row, err := r.SplitRow()
	if err != nil {
		return keyRange{}, err
	}
	if r.Top {
		return keyRange{start: row}, nil
	}
	if len(row) == 0 {
		return keyRange{}, fmt.Errorf("a reference to the lower half of a file that is split at the very first row")
	}
	return keyRange{end: row}, nil
}

// intersect gives the rows in both ranges; ok is false when there are none.
func (a keyRange) intersect(b keyRange) (keyRange, bool) {
	out := a
	if bytes.Compare(b.start, out.start) > 0 {
		out.start = b.start
	}
	if compareEnd(b.end, out.end) < 0 {
		out.end = b.end
	}
	return out, len(out.end) == 0 || bytes.Compare(out.start, out.end) < 0
}

// contains reports whether every row of b is in a.
func (a keyRange) contains(b keyRange) bool {
	return bytes.Compare(a.start, b.start) <= 0 && compareEnd(b.end, a.end) <= 0
}

func (a keyRange) equal(b keyRange) bool {
	return bytes.Equal(a.start, b.start) && bytes.Equal(a.end, b.end)
}

// compareEnd orders exclusive ends, of which the empty one is the last.
func compareEnd(a, b []byte) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return bytes.Compare(a, b)
}

func (a keyRange) String() string { return fmt.Sprintf("[%q,%q)", a.start, a.end) }
