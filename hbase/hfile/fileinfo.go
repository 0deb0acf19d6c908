package hfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
)

// FileInfo is the file info of an HFile: what its writer says about it as a
// whole. Numbers in it are big-endian, as HBase's Bytes writes them.
type FileInfo map[string][]byte

// The keys that are read here.
const (
	KeyMaxSeqID          = "MAX_SEQ_ID_KEY"      // largest sequence id, int64; of flushes and compactions
	KeyMaxMemstoreTS     = "MAX_MEMSTORE_TS_KEY" // largest sequence id of a cell in the file, int64
	KeyKeyValueVersion   = "KEY_VALUE_VERSION"   // 1 when cells carry their sequence id
	KeyMaxTagsLength     = "hfile.MAX_TAGS_LEN"  // there when cells carry tags
	KeyTagsCompressed    = "hfile.TAGS_COMPRESSED"
	KeyLastKey           = "hfile.LASTKEY"
	KeyDataBlockEncoding = "DATA_BLOCK_ENCODING"
	KeyTimeRange         = "TIMERANGE"
	KeyBulkLoadTime      = "BULKLOAD_TIMESTAMP" // int64; of bulk loads
	KeyMajorCompaction   = "MAJOR_COMPACTION_KEY"
	KeyMobCellsCount     = "MOB_CELLS_COUNT"
	KeyMobFileRefs       = "MOB_FILE_REFS"
)

// Int64 gives a value of 8 bytes.
func (i FileInfo) Int64(key string) (int64, bool) {
	v := i[key]
	if len(v) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(v)), true
}

// Int32 gives a value of 4 bytes.
func (i FileInfo) Int32(key string) (int32, bool) {
	v := i[key]
	if len(v) != 4 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(v)), true
}

// Bool gives a boolean; an absent one is false.
func (i FileInfo) Bool(key string) bool {
	v := i[key]
	return len(v) == 1 && v[0] != 0
}

// MaxSeqID gives the file's sequence id.
func (i FileInfo) MaxSeqID() (int64, bool) { return i.Int64(KeyMaxSeqID) }

// maxFileInfo bounds the file info block, as stored and decompressed.
const maxFileInfo = 64 << 20

// ReadFileInfo reads the file info of a file whose trailer is t. Errors are of
// KindUnsupported when the file is encrypted or its codec is not known here.
func ReadFileInfo(r io.ReaderAt, t Trailer) (FileInfo, error) {
	const op = "read HFile file info"
	if t.Encrypted() {
		return nil, hbackup.Errorf(op, "", hbackup.KindUnsupported, "the file is encrypted")
	}
	h, payload, err := readBlock(r, t.FileInfoOffset, t.hasChecksums(), maxFileInfo)
	if err != nil {
		return nil, hbackup.E(op, "", hbackup.KindOther, err)
	}
	if h.typ != FileInfoBlock {
		return nil, hbackup.E(op, "", hbackup.KindCorrupt, &BlockError{t.FileInfoOffset, h.typ, "it is not the file info, which the trailer puts there"})
	}
	info, err := decodeFileInfo(payload, h, t.Compression)
	if err != nil {
		return nil, hbackup.E(op, "", hbackup.KindOther, err)
	}
	return info, nil
}

// readBlock reads a block's header and payload as stored and checks its checksums.
func readBlock(r io.ReaderAt, offset int64, checksums bool, limit int64) (header, []byte, error) {
	size, parse := headerSize, parseHeader
	if !checksums {
		size, parse = oldHeaderSize, parseOldHeader
	}
	head := make([]byte, size)
	if err := readFullAt(r, head, offset); err != nil {
		return header{}, nil, err
	}
	h, fault := parse(head)
	if fault != "" {
		return h, nil, damaged(offset, h.typ, "%s", fault)
	}
	if h.onDisk > limit || h.uncompressed > limit {
		return h, nil, damaged(offset, h.typ, "%d bytes are too many (%d decompressed)", h.onDisk, h.uncompressed)
	}
	payload := make([]byte, h.onDisk)
	if err := readFullAt(r, payload, offset+int64(size)); err != nil {
		return h, nil, err
	}
	if !checksums {
		return h, payload, nil
	}
	data := h.onDiskWithData - headerSize
	if !sumsFit(h, head, payload[:data], payload[data:]) {
		return h, nil, damaged(offset, h.typ, "its checksums do not fit its bytes")
	}
	return h, payload[:data], nil
}

// sumsFit compares the checksums of a block with those of its header and payload.
func sumsFit(h header, head, payload, sums []byte) bool {
	table := tableOf(h.checksum)
	if table == nil {
		return len(bytes.Trim(sums, "\x00")) == 0
	}
	crc, chunk := crc32.Update(0, table, head), h.perChecksum-headerSize
	for {
		n := min(chunk, int64(len(payload)))
		crc = crc32.Update(crc, table, payload[:n])
		if crc != binary.BigEndian.Uint32(sums) {
			return false
		}
		payload, sums = payload[n:], sums[4:]
		if len(sums) == 0 {
			return true
		}
		crc, chunk = 0, h.perChecksum
	}
}

func readFullAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return hbackup.Errorf("", "", hbackup.KindIncomplete, "the file ends inside the %d bytes at offset %d", len(b), offset)
	}
	return err
}

// decodeFileInfo reads the payload of a file info block.
func decodeFileInfo(payload []byte, h header, codec Codec) (FileInfo, error) {
	if h.uncompressed > maxFileInfo {
		return nil, hbackup.Errorf("", "", hbackup.KindCorrupt, "%d bytes of file info", h.uncompressed)
	}
	b, err := decompress(codec, payload, int(h.uncompressed))
	if err != nil {
		return nil, err
	}
	return parseFileInfo(b)
}

// parseFileInfo reads "PBUF" and a delimited FileInfoProto, or the form of the
// versions before 2.2: an int32 count, then key and value each with a leading
// length, and a type byte between them.
func parseFileInfo(b []byte) (FileInfo, error) {
	const magic = "PBUF"
	if !bytes.HasPrefix(b, []byte(magic)) {
		return parseOldFileInfo(b)
	}
	b = b[len(magic):]
	n, used := protowire.ConsumeVarint(b)
	if used < 0 || n > uint64(len(b)-used) {
		return nil, infoFault("its length is wrong")
	}
	b = b[used : used+int(n)]
	info := FileInfo{}
	for len(b) > 0 {
		number, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			return nil, infoFault("it is no FileInfoProto")
		}
		b = b[used:]
		if number != 1 || kind != protowire.BytesType {
			if used = protowire.ConsumeFieldValue(number, kind, b); used < 0 {
				return nil, infoFault("it is no FileInfoProto")
			}
			b = b[used:]
			continue
		}
		pair, used := protowire.ConsumeBytes(b)
		if used < 0 {
			return nil, infoFault("an entry is cut off")
		}
		b = b[used:]
		key, value, ok := parsePair(pair)
		if !ok {
			return nil, infoFault("an entry is no BytesBytesPair")
		}
		info[string(key)] = bytes.Clone(value)
	}
	return info, nil
}

// parsePair reads a BytesBytesPair{first(1), second(2)}.
func parsePair(b []byte) (key, value []byte, ok bool) {
	for len(b) > 0 {
		number, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			return nil, nil, false
		}
		b = b[used:]
		if kind == protowire.BytesType && number <= 2 {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return nil, nil, false
			}
			if number == 1 {
				key = v
			} else {
				value = v
			}
			b = b[n:]
			continue
		}
		if used = protowire.ConsumeFieldValue(number, kind, b); used < 0 {
			return nil, nil, false
		}
		b = b[used:]
	}
	return key, value, true
}

// parseOldFileInfo reads a Hadoop HbaseMapWritable.
func parseOldFileInfo(b []byte) (FileInfo, error) {
	if len(b) < 4 {
		return nil, infoFault("%d bytes", len(b))
	}
	count := int64(binary.BigEndian.Uint32(b))
	b = b[4:]
	if count*3 > int64(len(b)) { // an entry has two lengths and a type
		return nil, infoFault("%d entries in %d bytes", count, len(b))
	}
	info := make(FileInfo, count)
	for range count {
		key, rest, ok := vintBytes(b)
		if !ok || len(rest) == 0 {
			return nil, infoFault("an entry is cut off")
		}
		value, rest, ok := vintBytes(rest[1:])
		if !ok {
			return nil, infoFault("an entry is cut off")
		}
		info[string(key)] = bytes.Clone(value)
		b = rest
	}
	return info, nil
}

// vintBytes takes bytes behind their length as a Hadoop vint.
func vintBytes(b []byte) (v, rest []byte, ok bool) {
	n, used := vint(b)
	if used == 0 || n < 0 || n > int64(len(b)-used) {
		return nil, nil, false
	}
	return b[used : used+int(n)], b[used+int(n):], true
}

// vint reads Hadoop's variable-length number (WritableUtils): one byte for -112
// to 127, else a byte that says sign and length. used is 0 when b is too short.
func vint(b []byte) (n int64, used int) {
	if len(b) == 0 {
		return 0, 0
	}
	first := int8(b[0])
	if first >= -112 {
		return int64(first), 1
	}
	negative, size := false, int(-112-int(first))
	if first < -120 {
		negative, size = true, int(-120-int(first))
	}
	if len(b) < 1+size {
		return 0, 0
	}
	for _, x := range b[1 : 1+size] {
		n = n<<8 | int64(x)
	}
	if negative {
		n = ^n
	}
	return n, 1 + size
}

func infoFault(format string, args ...any) error {
	return hbackup.E("", "", hbackup.KindCorrupt, fmt.Errorf("the file info is damaged: "+format, args...))
}
