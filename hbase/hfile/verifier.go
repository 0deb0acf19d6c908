package hfile

import (
	"hash/crc32"

	"hbackup"
)

// Summary is what a Verifier has seen.
type Summary struct {
	Entries    int64 // cells, from the trailer
	Blocks     int64
	DataBlocks int64
	// Checked counts the bytes that a checksum covers and fits.
	Checked int64

	Major, Minor int
	Compression  Codec
	Comparator   string
	Encrypted    bool
	// Checksummed is true when every block has checksums. It is false for a file
	// of version 2.0, for one written with checksum type NULL, and when checksums
	// were not asked for.
	Checksummed bool
	// MaxSeqID is MAX_SEQ_ID_KEY of the file info; -1 when there is none or the
	// file info cannot be read here (encrypted, or a codec that is not supported).
	MaxSeqID int64
	// MOBRefs are the MOB files that the file's cells name, by MOB_FILE_REFS of
	// the file info. HBase 2.6 and newer write it in MOB families.
	MOBRefs []MOBRef
	// InfoRead is false when the file info could not be read here: encrypted, of
	// a codec that is not supported, or very large. Then MOBRefs is not known.
	InfoRead bool
}

// Verifier checks a store file while its bytes are written to it in order: each
// block's header and checksums, that the blocks fill the file up to the trailer,
// and that the trailer's offsets are those of the blocks. It needs a few kilobytes
// however large the file or a block is.
//
// A changed bit in any block or in the trailer's magic or padding is found. Not
// covered, as HBase puts no checksum on it, are the trailer's numbers that nothing
// else in the file repeats (counts, sizes, index levels), the names of comparator
// and codec, the wrapped key, and the minor version.
type Verifier struct {
	size int64 // of the whole file; -1 when unknown
	pos  int64 // of the next byte
	err  error
	skip bool // no checks, only the trailer
	done bool

	step  step
	old   bool  // blocks have headers of version 2.0, as far as one can tell
	first error // what made the first header look like that
	head  [headerSize]byte
	have  int // bytes of head, or of the trailer

	block     int64 // offset of the current one
	header    header
	dataLeft  int64 // of header and payload
	chunkLeft int64 // of the data under the current checksum
	crc       uint32
	computed  uint64 // folded checksums of the data
	sumsLeft  int64
	sum       uint32
	stored    uint64 // folded checksums as stored
	info      []byte // the file info block's payload, when it is not too large
	infoHead  header

	offsets  offsets
	unsummed bool // a block had checksum type NULL
	summary  Summary
	trailer  [trailerSize]byte
}

// step is what the next byte belongs to.
type step uint8

const (
	inHeader step = iota
	inData
	inSums
	inTrailer
)

// offsets are what the trailer must repeat; -1 for none.
type offsets struct{ firstData, lastData, rootIndex, fileInfo int64 }

// NewVerifier makes a Verifier for a file of the given size, or of unknown size
// when it is negative. With the size, a cut or lengthened file is found earlier.
func NewVerifier(size int64) *Verifier {
	v := &Verifier{size: max(size, -1), offsets: offsets{-1, -1, -1, -1}}
	v.summary.MaxSeqID = -1
	return v
}

// SkipChecksums makes the Verifier look at the trailer only. It must be called
// before the first Write.
func (v *Verifier) SkipChecksums() { v.skip = true }

// Write takes the next bytes of the file. After an error, which is of KindCorrupt
// with a BlockError as its cause, every call gives the same.
func (v *Verifier) Write(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n := len(p)
	switch {
	case v.done:
		return 0, hbackup.Errorf("check HFile", "", hbackup.KindOther, "written to after Close")
	case v.size >= 0 && int64(n) > v.size-v.pos:
		return 0, v.fail(damaged(v.pos, Unknown, "the file is longer than its %d bytes", v.size))
	case v.skip:
		v.keepTail(p)
		return n, nil
	}
	for len(p) > 0 {
		var used int
		switch v.step {
		case inHeader:
			used = v.takeHeader(p)
		case inData:
			used = v.takeData(p)
		case inSums:
			used = v.takeSums(p)
		case inTrailer:
			used = v.takeTrailer(p)
		}
		if v.err != nil {
			return 0, v.err
		}
		v.pos += int64(used)
		p = p[used:]
	}
	return n, nil
}

func (v *Verifier) fail(err error) error {
	v.err = err
	return err
}

// keepTail keeps the last bytes that were written.
func (v *Verifier) keepTail(p []byte) {
	v.pos += int64(len(p))
	if len(p) >= trailerSize {
		v.have = copy(v.trailer[:], p[len(p)-trailerSize:])
		return
	}
	if over := v.have + len(p) - trailerSize; over > 0 {
		v.have = copy(v.trailer[:], v.trailer[over:v.have])
	}
	v.have += copy(v.trailer[v.have:], p)
}

// takeHeader collects a header, which may be cut by the borders of Writes.
func (v *Verifier) takeHeader(p []byte) int {
	if v.have == 0 {
		v.block = v.pos
	}
	want := headerSize
	if v.have < magicSize {
		want = magicSize
	} else if v.old {
		want = oldHeaderSize
	}
	used := copy(v.head[v.have:want], p)
	v.have += used
	switch {
	case v.have < want:
	case want == magicSize:
		if typeOf(v.head[:]) == TrailerBlock {
			copy(v.trailer[:], v.head[:magicSize])
			v.step = inTrailer
			if left := v.size - v.block; v.size >= 0 && left != trailerSize && left != trailerSizeV2 {
				v.badHeader(damaged(v.block, TrailerBlock, "it stands %d bytes before the end of the file", left))
			}
		} else if typeOf(v.head[:]) == Unknown {
			v.badHeader(damaged(v.block, Unknown, "no block begins with %q", v.head[:magicSize]))
		}
	default:
		v.startBlock()
	}
	return used
}

// badHeader fails with what is wrong; where the file may be one of version 2.0,
// with what was wrong with its first header.
func (v *Verifier) badHeader(err error) {
	if v.first != nil {
		err = v.first
	}
	v.fail(err)
}

// startBlock judges a complete header.
func (v *Verifier) startBlock() {
	h, fault := parseHeader(v.head[:])
	if v.old {
		h, fault = parseOldHeader(v.head[:])
	} else if fault != "" && v.block == 0 {
		// Version 2.0 has shorter headers. Whether this file is of that version
		// only the trailer can say; until then the blocks must at least follow
		// each other as if it were.
		if o, oldFault := parseOldHeader(v.head[:]); oldFault == "" {
			v.old, v.first = true, damaged(0, o.typ, "%s", fault)
			h, fault = o, ""
		}
	}
	if fault != "" {
		v.badHeader(damaged(v.block, h.typ, "%s", fault))
		return
	}
	size := headerSize + h.onDisk
	if v.old {
		size = oldHeaderSize + h.onDisk
	}
	if v.size >= 0 && v.block+size > v.size-trailerSizeV2 {
		v.badHeader(damaged(v.block, h.typ, "its %d bytes reach beyond the end of the file", size))
		return
	}
	v.note(h)
	v.header = h
	v.have = 0
	if v.old {
		v.dataLeft, v.sumsLeft = size-oldHeaderSize, 0
		if v.block == 0 { // 33 bytes were collected
			if v.dataLeft < headerSize-oldHeaderSize {
				v.badHeader(damaged(v.block, h.typ, "it is shorter than its header"))
				return
			}
			v.dataLeft -= headerSize - oldHeaderSize
		}
		v.step = inData
		v.finishData()
		return
	}
	v.dataLeft, v.sumsLeft = h.onDiskWithData-headerSize, h.sums()
	v.chunkLeft = h.perChecksum - headerSize
	v.computed, v.stored, v.sum = 0, 0, 0
	v.crc = 0
	if table := tableOf(h.checksum); table != nil {
		v.crc = crc32.Update(0, table, v.head[:])
	} else {
		v.unsummed = true
	}
	if v.chunkLeft == 0 && !v.unsummed {
		v.endChunk()
	}
	v.step = inData
	v.finishData()
}

// note remembers what the trailer must agree with.
func (v *Verifier) note(h header) {
	v.summary.Blocks++
	switch h.typ {
	case Data, EncodedData:
		v.summary.DataBlocks++
		v.offsets.lastData = v.block
		if v.offsets.firstData < 0 {
			v.offsets.firstData = v.block
		}
	case RootIndex:
		if v.offsets.rootIndex < 0 {
			v.offsets.rootIndex = v.block
		}
	case FileInfoBlock:
		if v.offsets.fileInfo >= 0 {
			v.badHeader(damaged(v.block, h.typ, "a second one; the first is at %d", v.offsets.fileInfo))
		}
		v.offsets.fileInfo = v.block
		if h.onDisk <= maxInfoInPassing {
			v.info, v.infoHead = make([]byte, 0, min(h.onDisk, 64<<10)), h
		}
	}
}

// maxInfoInPassing bounds the file info that is kept for the summary. A MOB
// file's name in it takes about 80 bytes.
const maxInfoInPassing = 16 << 20

func tableOf(t ChecksumType) *crc32.Table {
	switch t {
	case ChecksumCRC32:
		return crc32.IEEETable
	case ChecksumCRC32C:
		return castagnoli
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (v *Verifier) takeData(p []byte) int {
	if int64(len(p)) > v.dataLeft {
		p = p[:v.dataLeft]
	}
	if v.header.typ == FileInfoBlock && v.info != nil {
		v.info = append(v.info, p...)
	}
	v.dataLeft -= int64(len(p))
	if table := tableOf(v.header.checksum); table != nil && !v.old {
		for rest := p; len(rest) > 0; {
			n := int(min(int64(len(rest)), v.chunkLeft))
			v.crc = crc32.Update(v.crc, table, rest[:n])
			rest = rest[n:]
			if v.chunkLeft -= int64(n); v.chunkLeft == 0 {
				v.endChunk()
			}
		}
	}
	v.finishData()
	return len(p)
}

// endChunk notes the checksum of the data so far. The stored ones come behind all
// the data, so both sequences are folded into one number each: a fold is a
// bijection of its state, so a single difference always shows.
func (v *Verifier) endChunk() {
	v.computed = fold(v.computed, v.crc)
	v.crc = 0
	v.chunkLeft = v.header.perChecksum
}

func fold(state uint64, sum uint32) uint64 {
	return (state ^ uint64(sum)) * 0x9e3779b97f4a7c15
}

// finishData goes on when the data has ended.
func (v *Verifier) finishData() {
	if v.dataLeft > 0 || v.err != nil {
		return
	}
	if !v.old && v.header.checksum != ChecksumNull && v.chunkLeft < v.header.perChecksum {
		v.endChunk()
	}
	v.step = inSums
	if v.sumsLeft == 0 {
		v.step = inHeader
	}
}

func (v *Verifier) takeSums(p []byte) int {
	if int64(len(p)) > v.sumsLeft {
		p = p[:v.sumsLeft]
	}
	for _, b := range p {
		v.sum = v.sum<<8 | uint32(b)
		if v.sumsLeft--; v.sumsLeft%4 == 0 {
			if v.header.checksum == ChecksumNull {
				v.stored |= uint64(v.sum) // HBase leaves room for them, all zero
			} else {
				v.stored = fold(v.stored, v.sum)
			}
			v.sum = 0
		}
	}
	if v.sumsLeft == 0 {
		v.endBlock()
	}
	return len(p)
}

func (v *Verifier) endBlock() {
	v.step = inHeader
	h := v.header
	if v.computed != v.stored {
		v.fail(damaged(v.block, h.typ, "its checksums do not fit its bytes"))
		return
	}
	if h.checksum != ChecksumNull {
		v.summary.Checked += h.onDiskWithData
	}
}

// takeTrailer collects everything from the trailer's magic on.
func (v *Verifier) takeTrailer(p []byte) int {
	if v.have+len(p) > trailerSize {
		v.badHeader(damaged(v.block, TrailerBlock, "more than %d bytes follow it", trailerSize))
		return 0
	}
	v.have += copy(v.trailer[v.have:], p)
	return len(p)
}

// checkTrailer compares the trailer with the blocks that passed.
func (v *Verifier) checkTrailer(t Trailer) error {
	if err := t.checkOffsets(v.block); err != nil {
		return err
	}
	o := v.offsets
	switch {
	case v.old && t.hasChecksums():
		return v.first
	case !v.old && !t.hasChecksums():
		return trailerFault("it claims version %d.%d, which has no checksums, but the blocks have some", t.Major, t.Minor)
	case t.LoadOnOpenOffset != o.rootIndex:
		return trailerFault("it puts the root index at %d, but it is at %d", t.LoadOnOpenOffset, o.rootIndex)
	case t.FileInfoOffset != o.fileInfo:
		return trailerFault("it puts the file info at %d, but it is at %d", t.FileInfoOffset, o.fileInfo)
	case t.FirstDataBlockOffset != o.firstData && !(o.firstData < 0 && t.FirstDataBlockOffset <= 0):
		return trailerFault("it puts the first data block at %d, but it is at %d", t.FirstDataBlockOffset, o.firstData)
	case t.LastDataBlockOffset != o.lastData && !(o.lastData < 0 && t.LastDataBlockOffset <= 0):
		return trailerFault("it puts the last data block at %d, but it is at %d", t.LastDataBlockOffset, o.lastData)
	case t.Entries < v.summary.DataBlocks || t.Entries > 0 && v.summary.DataBlocks == 0:
		return trailerFault("%d entries in %d data blocks", t.Entries, v.summary.DataBlocks)
	}
	return nil
}

// Close gives the verdict on the whole file. It may be called again.
func (v *Verifier) Close() (Summary, error) {
	if v.err != nil || v.done {
		return v.summary, v.err
	}
	v.done = true
	switch {
	case v.pos == 0:
		v.fail(damaged(0, Unknown, "the file is empty"))
	case v.size >= 0 && v.pos < v.size:
		v.fail(damaged(v.pos, Unknown, "the file ends here, %d bytes early", v.size-v.pos))
	case !v.skip && v.step != inTrailer:
		v.badHeader(damaged(v.block, v.current(), "the file ends inside it, or without a trailer"))
	default:
		v.err = v.finish()
	}
	return v.summary, v.err
}

func (v *Verifier) current() BlockType {
	if v.step == inHeader {
		return Unknown
	}
	return v.header.typ
}

func (v *Verifier) finish() error {
	const op = "check HFile"
	end := v.trailer[:v.have]
	b, err := trailerBytes(end)
	if err == nil && !v.skip && len(b) != len(end) {
		err = trailerFault("it has %d bytes, not %d", len(end), len(b))
	}
	var t Trailer
	if err == nil {
		t, err = parseTrailer(b)
	}
	if err == nil && v.skip {
		err = t.checkOffsets(v.pos - int64(len(b)))
	} else if err == nil {
		err = v.checkTrailer(t)
	}
	switch {
	case err != nil && v.first != nil:
		return v.first
	case err != nil:
		return hbackup.E(op, "", hbackup.KindOf(err), &BlockError{v.pos - int64(len(end)), TrailerBlock, err.Error()})
	}
	s := &v.summary
	s.Entries, s.Major, s.Minor, s.Compression, s.Comparator, s.Encrypted = t.Entries, t.Major, t.Minor, t.Compression, t.Comparator, t.Encrypted()
	s.Checksummed = !v.skip && !v.old && !v.unsummed
	if v.info != nil && !t.Encrypted() {
		if info, err := decodeFileInfo(v.info, v.infoHead, t.Compression); err == nil {
			s.InfoRead = true
			if id, ok := info.MaxSeqID(); ok {
				s.MaxSeqID = id
			}
			if s.MOBRefs, err = info.MOBRefs(); err != nil {
				return hbackup.E(op, "", hbackup.KindCorrupt, &BlockError{v.offsets.fileInfo, FileInfoBlock, err.Error()})
			}
		}
	}
	return nil
}
