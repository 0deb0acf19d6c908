package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"hbackup"
)

func TestRealFiles(t *testing.T) {
	files := testFiles(t)
	for name, b := range files {
		s, err := verify(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, family, _ := strings.Cut(name, "-")
		codec := None
		for word, c := range map[string]Codec{"gz": GZ, "snappy": Snappy, "zstd": ZSTD} {
			if strings.Contains(family, word) {
				codec = c
			}
		}
		want := Summary{Entries: s.Entries, Blocks: s.Blocks, DataBlocks: s.DataBlocks, Checked: s.Checked, MaxSeqID: s.MaxSeqID,
			Major: 3, Minor: 3, Compression: codec, Comparator: "org.apache.hadoop.hbase.KeyValue$KVComparator",
			Encrypted: strings.Contains(family, "aes"), Checksummed: family != "nullsums",
			InfoRead: !strings.Contains(family, "aes"), MOBRefs: s.MOBRefs}
		if strings.HasPrefix(name, "3.0") {
			want.Comparator = s.Comparator
		}
		if !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %+v, not %+v", name, s, want)
		}
		if s.Entries < s.DataBlocks || s.DataBlocks < 1 || s.Blocks < s.DataBlocks+3 {
			t.Errorf("%s: %+v", name, s)
		}
		// All but the checksums and the trailer is covered by a checksum.
		if covered := s.Checked + 4*s.Blocks; s.Checksummed && family != "levels" && covered != int64(len(b)-trailerSize) {
			t.Errorf("%s: %d of %d bytes were checked", name, covered, len(b))
		}
		if bulk := strings.Contains(family, "bulk"); (s.MaxSeqID > 0) == (bulk || s.Encrypted) {
			t.Errorf("%s: the sequence id is %d", name, s.MaxSeqID)
		}
	}
	if s, _ := verify(files["2.6-levels"]); s.DataBlocks < 3 {
		t.Errorf("the file with many levels has %d data blocks", s.DataBlocks)
	}
}

// However the bytes are cut up, the verdict is the same, on whole and damaged files.
func TestCuts(t *testing.T) {
	files := testFiles(t)
	names := slices.Sorted(maps.Keys(files))
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(files[rapid.SampledFrom(names).Draw(t, "file")])
		if rapid.Bool().Draw(t, "damage") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		}
		want, wantErr := verify(b)
		size := int64(len(b))
		if rapid.Bool().Draw(t, "unknown size") {
			size = -1
		}
		v := NewVerifier(size)
		largest := rapid.SampledFrom([]int{1, 7, 40, 5000}).Draw(t, "largest")
		for rest := b; len(rest) > 0; {
			n := min(rapid.IntRange(0, largest).Draw(t, "n"), len(rest))
			if largest == 1 {
				n = 1
			}
			if m, err := v.Write(rest[:n]); err == nil && m != n {
				t.Fatalf("%d of %d bytes taken", m, n)
			}
			rest = rest[n:]
		}
		got, gotErr := v.Close()
		if size < 0 && (gotErr != nil) == (wantErr != nil) && gotErr != nil {
			return // it may have been found at another place
		}
		if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%+v, %v\nat once: %+v, %v", got, gotErr, want, wantErr)
		}
	})
}

// uncovered marks the bytes of a file's trailer that nothing repeats: the values
// of the protobuf fields that are not offsets, and the minor version.
func uncovered(file []byte) map[int]bool {
	at := map[int]bool{len(file) - versionSize: true}
	start := len(file) - trailerSize + magicSize
	body := file[start:]
	n, used := protowire.ConsumeVarint(body)
	message, pos := body[used:used+int(n)], start+used
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		covered := number == 1 || number == 2 || number == 9 || number == 10
		for i := range size {
			if !covered {
				at[pos+tag+i] = true
			}
		}
		message, pos = message[tag+size:], pos+tag+size
	}
	return at
}

// Every single changed byte is found, but for those that uncovered names.
func TestEveryByte(t *testing.T) {
	for name, b := range testFiles(t) {
		allowed := uncovered(b)
		flips := []byte{1, 0x80}
		if strings.HasPrefix(name, "2.6-none") || name == "2.6-nullsums" {
			flips = []byte{1, 2, 4, 8, 16, 32, 64, 128, 255}
		}
		// Under checksum type NULL only headers and structure are covered.
		nullSums := name == "2.6-nullsums"
		missed := 0
		for i := range b {
			for _, flip := range flips {
				b[i] ^= flip
				_, err := verify(b)
				b[i] ^= flip
				if err == nil {
					missed++
					if !allowed[i] && !(nullSums && i < len(b)-trailerSize) {
						t.Errorf("%s: byte %d of %d changed by %#x unnoticed", name, i, len(b), flip)
					}
					continue
				}
				var e *BlockError
				if !errors.As(err, &e) || !hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindUnsupported) {
					t.Fatalf("%s: byte %d: %v", name, i, err)
				}
				if e.Offset > int64(i) {
					t.Errorf("%s: byte %d was blamed on what follows: %v", name, i, err)
				}
			}
		}
		if missed > len(flips)*len(allowed) && !nullSums {
			t.Errorf("%s: %d changes unnoticed", name, missed)
		}
	}
}

// A file that is cut anywhere, or longer, is no whole file.
func TestLengths(t *testing.T) {
	for name, b := range testFiles(t) {
		for n := range b {
			if n%7 != 0 && n > 200 && n < len(b)-300 {
				continue
			}
			for _, size := range []int64{int64(len(b)), int64(n), -1} {
				v := NewVerifier(size)
				v.Write(b[:n])
				if _, err := v.Close(); !hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindUnsupported) {
					t.Fatalf("%s cut to %d bytes: %v", name, n, err)
				}
			}
		}
		for _, more := range [][]byte{{0}, {0, 0, 0, 3}, b[len(b)-trailerSize:], b, make([]byte, 5000)} {
			long := append(bytes.Clone(b), more...)
			for _, size := range []int64{int64(len(b)), int64(len(long)), -1} {
				v := NewVerifier(size)
				v.Write(long)
				if _, err := v.Close(); err == nil {
					t.Fatalf("%s with %d bytes more (size %d) passed", name, len(more), size)
				}
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, size := range []int64{0, -1, 100} {
		_, err := NewVerifier(size).Close()
		if !hbackup.IsKind(err, hbackup.KindCorrupt) || !strings.Contains(err.Error(), "empty") {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

// Two blocks that have changed places are found by their checksums fitting but
// the trailer not, or not at all, when nothing in the file depends on their order;
// a missing block is found when it is the first or last.
func TestMissingBlocks(t *testing.T) {
	m := madeFile{major: 3, minor: 3, checksum: ChecksumCRC32C, perChecksum: 100, entries: 3,
		blocks: []madeBlock{{Data, []byte("one")}, {Data, []byte("twotwo")}, {Data, []byte("threethree")}}}
	whole := m.make()
	if _, err := verify(whole); err != nil {
		t.Fatal(err)
	}
	first := int64(len(m.block(m.blocks[0], false)))
	for _, cut := range []int64{0, first} {
		b := append(bytes.Clone(whole[:cut]), whole[cut+first:]...)
		if _, err := verify(b); err == nil {
			t.Errorf("without the %d bytes from %d it passes", first, cut)
		}
	}
}

// Made files of every version, checksum type and chunk size pass, and a changed
// byte in a block with checksums does not.
func TestMadeFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([][2]int{{3, 3}, {3, 0}, {2, 3}, {2, 1}, {2, 0}}).Draw(t, "version")
		m := madeFile{major: v[0], minor: v[1], checksum: ChecksumType(rapid.IntRange(0, 2).Draw(t, "checksum")),
			perChecksum: rapid.SampledFrom([]int{33, 34, 64, 100, 16384}).Draw(t, "perChecksum")}
		old := m.major == 2 && m.minor == 0
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			b := madeBlock{BlockType(rapid.SampledFrom([]BlockType{Data, EncodedData, LeafIndex, BloomChunk, Meta}).Draw(t, "type")),
				rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")}
			if old {
				b.payload = append(b.payload, "at least as long as the header's rest"...)
			}
			if b.typ == Data || b.typ == EncodedData {
				m.entries += 2
			}
			m.blocks = append(m.blocks, b)
		}
		b := m.make()
		s, err := verify(b)
		if err != nil {
			t.Fatal(err)
		}
		if s.Checksummed != (!old && m.checksum != ChecksumNull) || s.Entries != m.entries || s.Blocks != int64(len(m.blocks)+2) {
			t.Fatalf("%+v", s)
		}
		if m.minor > 1 && s.MaxSeqID != 42 {
			t.Fatalf("the sequence id is %d", s.MaxSeqID)
		}
		if !s.Checksummed {
			return
		}
		size := trailerSize
		if m.major == 2 {
			size = trailerSizeV2
		}
		at := rapid.IntRange(0, len(b)-size-1).Draw(t, "at")
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if s, err := verify(b); err == nil {
			t.Fatalf("byte %d changed unnoticed: %+v", at, s)
		}
	})
}

// A damaged first header does not make a file one of the version without checksums.
func TestNotOld(t *testing.T) {
	m := madeFile{major: 3, minor: 3, checksum: ChecksumCRC32C, perChecksum: 16384, entries: 2,
		blocks: []madeBlock{{Data, bytes.Repeat([]byte("x"), 50)}, {Data, bytes.Repeat([]byte("x"), 50)}}}
	whole := m.make()
	for at := 24; at < headerSize; at++ {
		for _, flip := range []byte{1, 3, 0x80} {
			b := bytes.Clone(whole)
			b[at] ^= flip
			s, err := verify(b)
			var e *BlockError
			if !errors.As(err, &e) || e.Offset != 0 || s.Checksummed {
				t.Errorf("byte %d: %+v, %v", at, s, err)
			}
		}
	}
	// Nor does a header whose sizes are such that blocks without checksums follow each other.
	old := madeFile{major: 2, minor: 0, entries: 2, blocks: []madeBlock{{Data, bytes.Repeat([]byte("x"), 50)}}}.make()
	if s, err := verify(old); err != nil || s.Checksummed || s.Minor != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	binary.BigEndian.PutUint32(old[len(old)-4:], 1<<24|2)
	if _, err := verify(old); err == nil {
		t.Error("blocks without checksums passed in a file of version 2.1")
	}
	// And blocks with checksums do not belong into a file of version 2.0.
	with := madeFile{major: 2, minor: 1, checksum: ChecksumCRC32C, perChecksum: 16384, entries: 2, blocks: m.blocks}.make()
	binary.BigEndian.PutUint32(with[len(with)-4:], 2)
	if _, err := verify(with); err == nil {
		t.Error("blocks with checksums passed in a file of version 2.0")
	}
}

// A block may be of any size; nothing is allocated for it.
func TestMemory(t *testing.T) {
	b := madeFile{major: 3, minor: 3, checksum: ChecksumCRC32C, perChecksum: 16384, entries: 9,
		blocks: slices.Repeat([]madeBlock{{Data, make([]byte, 1<<20)}, {Data, make([]byte, 3000)}}, 4)}.make()
	allocs := testing.AllocsPerRun(5, func() {
		if _, err := verify(b); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 25 {
		t.Errorf("%v allocations", allocs)
	}
}

// Sizes that a damaged header claims cost nothing.
func TestHugeClaims(t *testing.T) {
	b := madeFile{major: 3, minor: 3, checksum: ChecksumCRC32C, perChecksum: 33, blocks: []madeBlock{{FileInfoBlock, nil}}}.make()
	for _, per := range []uint32{33, 1 << 14, 1<<31 - 1} {
		data := uint32(1<<31 - 1<<29)
		binary.BigEndian.PutUint32(b[8:], data-33+(data+per-1)/per*4)
		binary.BigEndian.PutUint32(b[25:], per)
		binary.BigEndian.PutUint32(b[29:], data)
		v := NewVerifier(-1)
		v.Write(b)
		if _, err := v.Close(); err == nil {
			t.Error("passed")
		}
		if _, err := verify(b); err == nil {
			t.Error("passed")
		}
	}
}

func TestSkipChecksums(t *testing.T) {
	for name, b := range testFiles(t) {
		want, err := verify(b)
		if err != nil {
			t.Fatal(err)
		}
		b[50] ^= 1
		for _, step := range []int{1, 100, 4095, 4096, 4097, len(b)} {
			v := NewVerifier(int64(len(b)))
			v.SkipChecksums()
			for rest := b; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				if _, err := v.Write(rest[:min(step, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			s, err := v.Close()
			if err != nil || s.Checksummed || s.Entries != want.Entries || s.Compression != want.Compression {
				t.Fatalf("%s in steps of %d: %+v, %v", name, step, s, err)
			}
		}
	}
}

func TestAfterTheEnd(t *testing.T) {
	b := testFiles(t)["2.6-none"]
	v := NewVerifier(-1)
	v.Write(b)
	s1, err1 := v.Close()
	s2, err2 := v.Close()
	if !reflect.DeepEqual(s1, s2) || err1 != nil || err2 != nil {
		t.Errorf("%v, %v", err1, err2)
	}
	if _, err := v.Write([]byte("x")); err == nil {
		t.Error("a Write after Close passed")
	}
}

func FuzzVerifier(f *testing.F) {
	for _, b := range testFiles(f) {
		f.Add(b, uint16(100))
	}
	f.Add(madeFile{major: 2, minor: 0, entries: 1, blocks: []madeBlock{{Data, make([]byte, 100)}}}.make(), uint16(1))
	f.Add(madeFile{major: 2, minor: 1, perChecksum: 33, checksum: ChecksumCRC32, entries: 1, blocks: []madeBlock{{Data, make([]byte, 100)}}}.make(), uint16(33))
	f.Fuzz(func(t *testing.T, b []byte, step uint16) {
		want, wantErr := verify(b)
		v := NewVerifier(int64(len(b)))
		for rest := b; len(rest) > 0; rest = rest[min(int(step)+1, len(rest)):] {
			v.Write(rest[:min(int(step)+1, len(rest))])
		}
		got, gotErr := v.Close()
		if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%+v, %v\nat once: %+v, %v", got, gotErr, want, wantErr)
		}
		if gotErr != nil && hbackup.KindOf(gotErr) == hbackup.KindOther {
			t.Fatalf("an error of no kind: %v", gotErr)
		}
	})
}

func BenchmarkVerifier(b *testing.B) {
	for _, c := range []struct {
		name     string
		checksum ChecksumType
		payload  int
	}{{"CRC32C/64KiB", ChecksumCRC32C, 64 << 10}, {"CRC32/64KiB", ChecksumCRC32, 64 << 10}, {"CRC32C/2KiB", ChecksumCRC32C, 2 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			blocks := slices.Repeat([]madeBlock{{Data, make([]byte, c.payload)}}, 32<<20/c.payload)
			file := madeFile{major: 3, minor: 3, checksum: c.checksum, perChecksum: 16384, entries: 1 << 20, blocks: blocks}.make()
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				v := NewVerifier(int64(len(file)))
				for rest := file; len(rest) > 0; rest = rest[min(256<<10, len(rest)):] {
					v.Write(rest[:min(256<<10, len(rest))])
				}
				if _, err := v.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
