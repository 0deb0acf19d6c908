// Package hfile reads HBase's store files: it checks every block of one while
// its bytes pass by, and reads its trailer and file info.
//
// An HFile is a row of blocks and a trailer of fixed size:
//
//	data blocks, with leaf index and Bloom filter blocks in between
//	meta and intermediate index blocks
//	root index of the data, root index of the meta blocks, file info, Bloom meta   (load on open)
//	trailer: 4096 bytes in version 3, 212 in version 2
//
// Every block has a header and, since version 2.1, checksums; encrypted or
// compressed blocks too, over the bytes as stored. All integers are big-endian.
// The format is that of HBase's HFileBlock, FixedFileTrailer and HFileInfo.
package hfile

import (
	"encoding/binary"
	"fmt"

	"hbackup"
)

// BlockType is what a block holds, known by the magic it begins with.
type BlockType uint8

// The block types of versions 2 and 3.
const (
	Unknown BlockType = iota
	Data
	EncodedData
	LeafIndex
	BloomChunk
	Meta
	IntermediateIndex
	RootIndex
	FileInfoBlock
	GeneralBloomMeta
	DeleteFamilyBloomMeta
	TrailerBlock
)

var blockTypes = [...]struct{ name, magic string }{
	Unknown:               {"unknown", ""},
	Data:                  {"DATA", "DATABLK*"},
	EncodedData:           {"ENCODED_DATA", "DATABLKE"},
	LeafIndex:             {"LEAF_INDEX", "IDXLEAF2"},
	BloomChunk:            {"BLOOM_CHUNK", "BLMFBLK2"},
	Meta:                  {"META", "METABLKc"},
	IntermediateIndex:     {"INTERMEDIATE_INDEX", "IDXINTE2"},
	RootIndex:             {"ROOT_INDEX", "IDXROOT2"},
	FileInfoBlock:         {"FILE_INFO", "FILEINF2"},
	GeneralBloomMeta:      {"GENERAL_BLOOM_META", "BLMFMET2"},
	DeleteFamilyBloomMeta: {"DELETE_FAMILY_BLOOM_META", "DFBLMET2"},
	TrailerBlock:          {"TRAILER", `TRABLK"$`},
}

// String gives HBase's own name of the type.
func (t BlockType) String() string {
	if int(t) < len(blockTypes) {
		return blockTypes[t].name
	}
	return blockTypes[Unknown].name
}

const magicSize = 8

// typeOf recognises a magic of 8 bytes.
func typeOf(magic []byte) BlockType {
	for t := Data; int(t) < len(blockTypes); t++ {
		if string(magic[:magicSize]) == blockTypes[t].magic {
			return t
		}
	}
	return Unknown
}

// ChecksumType says how a block's checksums were made.
type ChecksumType uint8

// The checksum types; the default of HBase is CRC32C.
const (
	ChecksumNull   ChecksumType = 0
	ChecksumCRC32  ChecksumType = 1
	ChecksumCRC32C ChecksumType = 2
)

const (
	// headerSize is that of a block's header, oldHeaderSize that of version 2.0,
	// which has no checksums.
	headerSize    = 33
	oldHeaderSize = 24
)

// header is a block's header.
type header struct {
	typ            BlockType
	onDisk         int64 // payload as stored and checksums
	uncompressed   int64 // payload before compression and encryption
	checksum       ChecksumType
	perChecksum    int64
	onDiskWithData int64 // header and payload as stored, without checksums
}

// sums gives the size of the block's checksums.
func (h header) sums() int64 {
	return (h.onDiskWithData + h.perChecksum - 1) / h.perChecksum * 4
}

// parseHeader reads a header of headerSize bytes and reports what is wrong with it, or "".
func parseHeader(b []byte) (h header, fault string) {
	h, fault = parseOldHeader(b)
	if fault != "" {
		return h, fault
	}
	h.checksum = ChecksumType(b[24])
	h.perChecksum = int64(int32(binary.BigEndian.Uint32(b[25:])))
	h.onDiskWithData = int64(int32(binary.BigEndian.Uint32(b[29:])))
	switch {
	case h.checksum > ChecksumCRC32C:
		return h, fmt.Sprintf("checksum type %d", h.checksum)
	case h.perChecksum < headerSize:
		return h, fmt.Sprintf("%d bytes per checksum", h.perChecksum)
	case h.onDiskWithData < headerSize || h.onDiskWithData-headerSize+h.sums() != h.onDisk:
		return h, fmt.Sprintf("its sizes contradict each other (%d with checksums, %d with header)", h.onDisk, h.onDiskWithData)
	}
	return h, ""
}

// parseOldHeader reads the part of a header that every version has.
func parseOldHeader(b []byte) (h header, fault string) {
	h.typ = typeOf(b)
	h.onDisk = int64(int32(binary.BigEndian.Uint32(b[8:])))
	h.uncompressed = int64(int32(binary.BigEndian.Uint32(b[12:])))
	prev := int64(binary.BigEndian.Uint64(b[16:]))
	switch {
	case h.typ == Unknown || h.typ == TrailerBlock:
		return h, fmt.Sprintf("no block begins with %q", b[:magicSize])
	case h.onDisk < 0:
		return h, fmt.Sprintf("a size of %d bytes", h.onDisk)
	case h.uncompressed < 0:
		return h, fmt.Sprintf("an uncompressed size of %d bytes", h.uncompressed)
	case prev < -1:
		return h, fmt.Sprintf("%d as the previous block's offset", prev)
	}
	return h, ""
}

// BlockError says where a file is damaged. It is the cause of an error of
// KindCorrupt.
type BlockError struct {
	Offset int64 // of the block, in bytes from the start of the file
	Type   BlockType
	Reason string
}

func (e *BlockError) Error() string {
	return fmt.Sprintf("%s block at offset %d: %s", e.Type, e.Offset, e.Reason)
}

func damaged(offset int64, t BlockType, format string, args ...any) error {
	return hbackup.E("check HFile", "", hbackup.KindCorrupt, &BlockError{offset, t, fmt.Sprintf(format, args...)})
}
