package hfile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// testFiles gives the store files that real servers wrote, by name:
// <HBase version>-<column family>; see e2e/hfile for how they came to be.
func testFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.hfile")
	if err != nil || len(names) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(n), ".hfile")] = b
	}
	return files
}

// madeBlock is a block of a made file.
type madeBlock struct {
	typ     BlockType
	payload []byte
}

// madeFile describes a file for make.
type madeFile struct {
	major, minor int
	checksum     ChecksumType
	perChecksum  int
	blocks       []madeBlock // root index and file info are added
	entries      int64
	extra        []byte // fields behind the trailer's own
}

// make writes the file the plain way, as HBase does.
func (m madeFile) make() []byte {
	var file []byte
	old := m.major == 2 && m.minor == 0
	t := Trailer{FirstDataBlockOffset: -1, LastDataBlockOffset: -1, Entries: m.entries}
	blocks := append(append([]madeBlock{}, m.blocks...), madeBlock{RootIndex, nil}, madeBlock{FileInfoBlock, madeInfo(map[string]string{KeyMaxSeqID: "\x00\x00\x00\x00\x00\x00\x00\x2a"})})
	for _, b := range blocks {
		at := int64(len(file))
		switch b.typ {
		case Data, EncodedData:
			if t.FirstDataBlockOffset < 0 {
				t.FirstDataBlockOffset = at
			}
			t.LastDataBlockOffset = at
		case RootIndex:
			t.LoadOnOpenOffset = at
		case FileInfoBlock:
			t.FileInfoOffset = at
		}
		file = append(file, m.block(b, old)...)
	}
	return append(file, m.trailer(t)...)
}

func (m madeFile) block(b madeBlock, old bool) []byte {
	out := []byte(blockTypes[b.typ].magic)
	chunks := (headerSize + len(b.payload) + max(m.perChecksum, 1) - 1) / max(m.perChecksum, 1)
	onDisk := len(b.payload) + 4*chunks
	if old {
		onDisk = len(b.payload)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(onDisk))
	out = binary.BigEndian.AppendUint32(out, uint32(len(b.payload)))
	out = binary.BigEndian.AppendUint64(out, ^uint64(0))
	if old {
		return append(out, b.payload...)
	}
	out = append(out, byte(m.checksum))
	out = binary.BigEndian.AppendUint32(out, uint32(m.perChecksum))
	out = binary.BigEndian.AppendUint32(out, uint32(headerSize+len(b.payload)))
	out = append(out, b.payload...)
	var sums []byte
	for rest := out; len(rest) > 0; rest = rest[min(len(rest), m.perChecksum):] {
		var sum uint32
		switch chunk := rest[:min(len(rest), m.perChecksum)]; m.checksum {
		case ChecksumCRC32:
			sum = crc32.ChecksumIEEE(chunk)
		case ChecksumCRC32C:
			sum = crc32.Checksum(chunk, castagnoli)
		}
		sums = binary.BigEndian.AppendUint32(sums, sum)
	}
	return append(out, sums...)
}

func (m madeFile) trailer(t Trailer) []byte {
	size := trailerSize
	if m.major == 2 {
		size = trailerSizeV2
	}
	out := []byte(blockTypes[TrailerBlock].magic)
	long := func(v int64) { out = binary.BigEndian.AppendUint64(out, uint64(v)) }
	short := func(v int64) { out = binary.BigEndian.AppendUint32(out, uint32(v)) }
	if m.major == 2 && m.minor < 2 {
		long(t.FileInfoOffset)
		long(t.LoadOnOpenOffset)
		short(0)
		long(0)
		short(0)
		long(0)
		long(t.Entries)
		short(int64(None))
		short(1)
		long(t.FirstDataBlockOffset)
		long(t.LastDataBlockOffset)
		out = append(out, "org.apache.hadoop.hbase.KeyValue$KeyComparator"...)
	} else {
		var b []byte
		for i, v := range []int64{t.FileInfoOffset, t.LoadOnOpenOffset, 0, 0, 0, 0, t.Entries, 1, t.FirstDataBlockOffset, t.LastDataBlockOffset} {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), uint64(v))
		}
		b = protowire.AppendString(protowire.AppendTag(b, 11, protowire.BytesType), "org.apache.hadoop.hbase.KeyValue$KVComparator")
		b = protowire.AppendVarint(protowire.AppendTag(b, 12, protowire.VarintType), uint64(None))
		out = protowire.AppendBytes(out, append(b, m.extra...))
	}
	out = append(out, bytes.Repeat([]byte{0}, size-versionSize-len(out))...)
	return binary.BigEndian.AppendUint32(out, uint32(m.minor)<<24|uint32(m.major))
}

func madeInfo(entries map[string]string) []byte {
	var b []byte
	for k, v := range entries {
		pair := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), k)
		pair = protowire.AppendString(protowire.AppendTag(pair, 2, protowire.BytesType), v)
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), pair)
	}
	return protowire.AppendBytes([]byte("PBUF"), b)
}

// verify checks a whole file in one Write.
func verify(b []byte) (Summary, error) {
	v := NewVerifier(int64(len(b)))
	v.Write(b)
	return v.Close()
}
