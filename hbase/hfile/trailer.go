package hfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
)

// Codec is a compression codec by HBase's number (the ordinal of Compression.Algorithm).
type Codec int32

// The codecs of HBase.
const (
	LZO Codec = iota
	GZ
	None
	Snappy
	LZ4
	BZIP2
	ZSTD
	LZMA
	Brotli
)

// String gives HBase's own name, or the number of an unknown codec.
func (c Codec) String() string {
	names := [...]string{"LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD", "LZMA", "BROTLI"}
	if c >= 0 && int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("codec %d", int32(c))
}

// Trailer is the end of an HFile (FileTrailerProto). Offsets are from the start
// of the file; -1 for none.
type Trailer struct {
	Major, Minor int

	FileInfoOffset            int64
	LoadOnOpenOffset          int64
	UncompressedDataIndexSize int64
	TotalUncompressedBytes    int64
	DataIndexCount            int64 // entries of the root index
	MetaIndexCount            int64
	Entries                   int64 // cells in the file
	DataIndexLevels           int64
	FirstDataBlockOffset      int64
	LastDataBlockOffset       int64
	Comparator                string // Java class
	Compression               Codec
	EncryptionKey             []byte // wrapped; nil when the file is not encrypted
}

// Encrypted reports whether the blocks are encrypted.
func (t Trailer) Encrypted() bool { return len(t.EncryptionKey) > 0 }

// hasChecksums reports whether the version has them.
func (t Trailer) hasChecksums() bool { return t.Major == 3 || t.Minor >= 1 }

const (
	trailerSize    = 4096 // version 3
	trailerSizeV2  = 212
	versionSize    = 4
	comparatorSize = 128 // of the fixed-size name in the trailers of 2.0 and 2.1
	maxMinor       = 3
	maxField       = 64 // HBase's master knows 16; more than this is a damaged tag
)

// ReadTrailer reads the trailer of a file of the given size.
func ReadTrailer(r io.ReaderAt, size int64) (Trailer, error) {
	const op = "read HFile trailer"
	if size < trailerSizeV2 {
		return Trailer{}, hbackup.Errorf(op, "", hbackup.KindCorrupt, "%d bytes are no HFile", size)
	}
	b := make([]byte, min(size, trailerSize))
	if n, err := r.ReadAt(b, size-int64(len(b))); n < len(b) {
		if err == nil || err == io.EOF {
			return Trailer{}, hbackup.Errorf(op, "", hbackup.KindIncomplete, "the file is shorter than %d bytes", size)
		}
		return Trailer{}, hbackup.E(op, "", hbackup.KindOther, err)
	}
	b, err := trailerBytes(b)
	if err != nil {
		return Trailer{}, hbackup.E(op, "", hbackup.KindOther, err)
	}
	t, err := parseTrailer(b)
	if err != nil {
		return Trailer{}, hbackup.E(op, "", hbackup.KindOther, err)
	}
	if err := t.checkOffsets(size - int64(len(b))); err != nil {
		return Trailer{}, hbackup.E(op, "", hbackup.KindCorrupt, err)
	}
	return t, nil
}

// trailerBytes cuts the trailer out of the end of a file.
func trailerBytes(end []byte) ([]byte, error) {
	if len(end) < trailerSizeV2 {
		return nil, hbackup.Errorf("", "", hbackup.KindCorrupt, "%d bytes are no HFile", len(end))
	}
	major, minor := version(end)
	size := 0
	switch major {
	case 2:
		size = trailerSizeV2
	case 3:
		size = trailerSize
	default:
		return nil, hbackup.Errorf("", "", hbackup.KindUnsupported, "HFile version %d.%d", major, minor)
	}
	if len(end) < size {
		return nil, hbackup.Errorf("", "", hbackup.KindCorrupt, "the trailer is cut off")
	}
	return end[len(end)-size:], nil
}

// version reads the last four bytes: the minor version and three bytes of the major.
func version(end []byte) (major, minor int) {
	v := binary.BigEndian.Uint32(end[len(end)-versionSize:])
	return int(v & 0xffffff), int(v >> 24)
}

// parseTrailer reads a whole trailer. Padding must be zero and every field there,
// so that few of its bits may change unnoticed.
func parseTrailer(b []byte) (t Trailer, err error) {
	t.Major, t.Minor = version(b)
	if typeOf(b) != TrailerBlock {
		return t, trailerFault("it begins with %q", b[:magicSize])
	}
	if t.Minor > maxMinor {
		return t, hbackup.Errorf("", "", hbackup.KindUnsupported, "HFile version %d.%d", t.Major, t.Minor)
	}
	body := b[magicSize : len(b)-versionSize]
	if t.Major == 2 && t.Minor < 2 {
		return t, t.parseFixed(body)
	}
	n, used := protowire.ConsumeVarint(body)
	if used < 0 || n > uint64(len(body)-used) {
		return t, trailerFault("its length is wrong")
	}
	message, padding := body[used:used+int(n)], body[used+int(n):]
	if len(bytes.Trim(padding, "\x00")) != 0 {
		return t, trailerFault("its padding is not zero")
	}
	return t, t.parseMessage(message)
}

func trailerFault(format string, args ...any) error {
	return hbackup.Errorf("", "", hbackup.KindCorrupt, format, args...)
}

// parseMessage reads a FileTrailerProto. HBase writes fields 1 to 12 always and
// in order, field 13 for an encrypted file, and newer ones behind.
func (t *Trailer) parseMessage(b []byte) error {
	var codec, next int64 = 0, 1
	fields := [...]*int64{1: &t.FileInfoOffset, 2: &t.LoadOnOpenOffset, 3: &t.UncompressedDataIndexSize, 4: &t.TotalUncompressedBytes,
		5: &t.DataIndexCount, 6: &t.MetaIndexCount, 7: &t.Entries, 8: &t.DataIndexLevels, 9: &t.FirstDataBlockOffset,
		10: &t.LastDataBlockOffset, 11: nil, 12: &codec}
	for len(b) > 0 {
		number, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			return trailerFault("it is no FileTrailerProto")
		}
		b = b[used:]
		if next <= 12 && int64(number) != next || int64(number) < next {
			return trailerFault("field %d stands where field %d is due", number, next)
		}
		next = int64(number) + 1
		switch {
		case number == 11 && kind == protowire.BytesType, number == 13 && kind == protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return trailerFault("field %d is cut off", number)
			}
			if number == 11 {
				t.Comparator = string(v)
			} else {
				t.EncryptionKey = bytes.Clone(v)
			}
			b = b[n:]
		case number <= 12 && number != 11 && kind == protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return trailerFault("field %d is cut off", number)
			}
			*fields[number] = int64(v)
			b = b[n:]
		case number <= 13:
			return trailerFault("field %d has another type", number)
		case number > maxField:
			return trailerFault("field %d", number)
		default:
			n := protowire.ConsumeFieldValue(number, kind, b)
			if n < 0 {
				return trailerFault("field %d is cut off", number)
			}
			b = b[n:]
		}
	}
	if next <= 12 {
		return trailerFault("field %d is missing", next)
	}
	if codec < 0 || codec > 1<<20 {
		return trailerFault("codec %d", codec)
	}
	t.Compression = Codec(codec)
	return nil
}

// parseFixed reads the trailer of versions 2.0 and 2.1, which was no protobuf.
func (t *Trailer) parseFixed(b []byte) error {
	long := func() int64 { v := int64(binary.BigEndian.Uint64(b)); b = b[8:]; return v }
	short := func() int64 { v := int64(int32(binary.BigEndian.Uint32(b))); b = b[4:]; return v }
	t.FileInfoOffset = long()
	t.LoadOnOpenOffset = long()
	t.DataIndexCount = short()
	t.UncompressedDataIndexSize = long()
	t.MetaIndexCount = short()
	t.TotalUncompressedBytes = long()
	t.Entries = long()
	t.Compression = Codec(short())
	t.DataIndexLevels = short()
	t.FirstDataBlockOffset = long()
	t.LastDataBlockOffset = long()
	t.Comparator = string(bytes.TrimRight(b[:comparatorSize], "\x00"))
	if t.Compression < 0 || t.Compression > Brotli {
		return trailerFault("codec %d", t.Compression)
	}
	return nil
}

// checkOffsets checks the trailer's numbers against the length of all blocks.
func (t Trailer) checkOffsets(blocks int64) error {
	inside := func(offset int64) bool { return offset >= 0 && offset < blocks }
	switch {
	case !inside(t.FileInfoOffset), !inside(t.LoadOnOpenOffset):
		return trailerFault("the file info (%d) or the load-on-open section (%d) is not inside the file", t.FileInfoOffset, t.LoadOnOpenOffset)
	case t.FileInfoOffset < t.LoadOnOpenOffset:
		return trailerFault("the file info (%d) comes before the load-on-open section (%d)", t.FileInfoOffset, t.LoadOnOpenOffset)
	case t.FirstDataBlockOffset < -1 || t.FirstDataBlockOffset >= blocks || t.LastDataBlockOffset < -1 || t.LastDataBlockOffset >= blocks:
		return trailerFault("data blocks from %d to %d are not inside the file", t.FirstDataBlockOffset, t.LastDataBlockOffset)
	case t.Entries < 0, t.DataIndexCount < 0, t.MetaIndexCount < 0, t.DataIndexLevels < 0, t.UncompressedDataIndexSize < 0, t.TotalUncompressedBytes < 0:
		return trailerFault("a count is negative")
	}
	return nil
}
