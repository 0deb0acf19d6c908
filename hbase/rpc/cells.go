package rpc

import (
	"encoding/binary"
	"fmt"
	"math"

	"hbackup/hbase/hbpb"
)

// CellType is what a cell does.
type CellType byte

// The cell types of HBase.
const (
	CellPut                 CellType = 4
	CellDelete              CellType = 8  // one version
	CellDeleteFamilyVersion CellType = 10 // one timestamp of a family
	CellDeleteColumn        CellType = 12 // all versions of a column
	CellDeleteFamily        CellType = 14 // all of a family
)

// Now as a timestamp of a cell to be written stands for the server's clock.
const Now int64 = math.MaxInt64

// Cell is one version of one column of one row.
type Cell struct {
	Row, Family, Qualifier []byte
	Timestamp              int64 // ms since 1970, as a rule
	Type                   CellType
	Value                  []byte
	Tags                   []byte // HBase's own encoding: uint16 length, type, value; repeated
}

// A cell block of KeyValueCodecWithTags is, per cell: int32 length of what
// follows; int32 key length; int32 value length; the key: int16 row length, row,
// int8 family length, family, qualifier, int64 timestamp, int8 type; the value;
// and, only if there are tags, uint16 tags length and tags.

const keyFixed = 2 + 1 + 8 + 1 // what a key has besides row, family and qualifier

// appendCell encodes one cell.
func appendCell(b []byte, c Cell) ([]byte, error) {
	if len(c.Row) == 0 || len(c.Row) > math.MaxInt16 {
		return nil, fmt.Errorf("a row of %d bytes; HBase allows 1 to %d", len(c.Row), math.MaxInt16)
	}
	if len(c.Family) > math.MaxInt8 {
		return nil, fmt.Errorf("a family name of %d bytes; HBase allows %d", len(c.Family), math.MaxInt8)
	}
	if len(c.Tags) > math.MaxUint16 {
		return nil, fmt.Errorf("%d bytes of tags; HBase allows %d", len(c.Tags), math.MaxUint16)
	}
	key := keyFixed + len(c.Row) + len(c.Family) + len(c.Qualifier)
	total := 8 + key + len(c.Value)
	if len(c.Tags) > 0 {
		total += 2 + len(c.Tags)
	}
	if total > maxRequest {
		return nil, fmt.Errorf("a cell of %d bytes is too large for a request", total)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(total))
	b = binary.BigEndian.AppendUint32(b, uint32(key))
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Value)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.Row)))
	b = append(b, c.Row...)
	b = append(b, byte(len(c.Family)))
	b = append(b, c.Family...)
	b = append(b, c.Qualifier...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Timestamp))
	b = append(b, byte(c.Type))
	b = append(b, c.Value...)
	if len(c.Tags) > 0 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(c.Tags)))
		b = append(b, c.Tags...)
	}
	return b, nil
}

// nextCell takes one cell off a cell block. The cell shares the block's memory.
func nextCell(block []byte) (Cell, []byte, error) {
	body, rest, ok := cut32(block)
	if !ok {
		return Cell{}, nil, corruptf("cell block: a cell is cut off (%d bytes left)", len(block))
	}
	if len(body) < 8 {
		return Cell{}, nil, corruptf("cell block: a cell of %d bytes", len(body))
	}
	keyLen, valueLen := uint64(binary.BigEndian.Uint32(body)), uint64(binary.BigEndian.Uint32(body[4:]))
	body = body[8:]
	if keyLen+valueLen > uint64(len(body)) {
		return Cell{}, nil, corruptf("cell block: key of %d and value of %d bytes in %d", keyLen, valueLen, len(body))
	}
	c, err := parseKey(body[:keyLen])
	if err != nil {
		return Cell{}, nil, err
	}
	c.Value = body[keyLen : keyLen+valueLen : keyLen+valueLen]
	if tags := body[keyLen+valueLen:]; len(tags) > 0 {
		if len(tags) < 2 || int(binary.BigEndian.Uint16(tags)) != len(tags)-2 {
			return Cell{}, nil, corruptf("cell block: %d bytes of tags do not add up", len(tags))
		}
		c.Tags = tags[2:]
	}
	return c, rest, nil
}

func parseKey(key []byte) (Cell, error) {
	if len(key) < keyFixed {
		return Cell{}, corruptf("cell block: a key of %d bytes", len(key))
	}
	fixed := key[len(key)-9:]
	c := Cell{Timestamp: int64(binary.BigEndian.Uint64(fixed)), Type: CellType(fixed[8])}
	names := key[2 : len(key)-9] // row, int8, family, qualifier
	rowLen := int(binary.BigEndian.Uint16(key))
	if rowLen+1 > len(names) {
		return Cell{}, corruptf("cell block: a row of %d bytes in a key of %d", rowLen, len(key))
	}
	c.Row, names = names[:rowLen:rowLen], names[rowLen:]
	familyLen := int(names[0])
	names = names[1:]
	if familyLen > len(names) {
		return Cell{}, corruptf("cell block: a family of %d bytes in a key of %d", familyLen, len(key))
	}
	c.Family, c.Qualifier = names[:familyLen:familyLen], names[familyLen:len(names):len(names)]
	return c, nil
}

// takeCells takes n cells off a block.
func takeCells(block []byte, n int) (cells []Cell, rest []byte, err error) {
	const least = 4 + 8 + keyFixed
	if n < 0 || n > len(block)/least {
		return nil, nil, corruptf("cell block: %d cells in %d bytes", n, len(block))
	}
	cells = make([]Cell, n)
	for i := range cells {
		if cells[i], block, err = nextCell(block); err != nil {
			return nil, nil, err
		}
	}
	return cells, block, nil
}

func cut32(b []byte) (body, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// resultCells gives the cells of a result, which lie in the cell block when
// the result counts them and in the message otherwise.
func resultCells(r *hbpb.Result, block []byte) (cells []Cell, rest []byte, err error) {
	if n := int(r.GetAssociatedCellCount()); n != 0 && len(r.GetCell()) == 0 {
		return takeCells(block, n)
	}
	for _, p := range r.GetCell() {
		cells = append(cells, Cell{
			Row: p.Row, Family: p.Family, Qualifier: p.Qualifier,
			Timestamp: int64(p.GetTimestamp()), Type: CellType(p.GetCellType()),
			Value: p.Value, Tags: p.Tags,
		})
	}
	return cells, block, nil
}
