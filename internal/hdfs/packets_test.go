package hdfs

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

func protowireNumber(n int) protowire.Number { return protowire.Number(n) }

// readAnswer makes what a data node answers to a read: the response and packets.
// It also gives the end of each unit.
func readAnswer(kind uint64, perChunk int, data [][]byte) (answer []byte, ends []int) {
	checksum := number(number(nil, 1, kind), 2, uint64(perChunk))
	response := number(nil, 1, 0)
	response = field(response, 4, number(field(nil, 1, checksum), 2, 0))
	answer = protowire.AppendBytes(nil, response)
	ends = append(ends, len(answer))
	table := map[uint64]*crc32.Table{1: crc32.IEEETable, 2: castagnoli}[kind]
	for i, d := range data {
		var sums []byte
		for rest := d; table != nil && len(rest) > 0; rest = rest[min(len(rest), perChunk):] {
			sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(rest[:min(len(rest), perChunk)], table))
		}
		header := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0)
		header = protowire.AppendFixed64(protowire.AppendTag(header, 2, protowire.Fixed64Type), uint64(i))
		header = number(header, 3, 0)
		header = protowire.AppendFixed32(protowire.AppendTag(header, 4, protowire.Fixed32Type), uint32(len(d)))
		answer = binary.BigEndian.AppendUint32(answer, uint32(4+len(sums)+len(d)))
		answer = binary.BigEndian.AppendUint16(answer, uint16(len(header)))
		answer = append(append(append(answer, header...), sums...), d...)
		ends = append(ends, len(answer))
	}
	return answer, ends
}

func drawAnswer(t *rapid.T) (answer []byte, ends []int, kind uint64) {
	kind = uint64(rapid.IntRange(0, 2).Draw(t, "kind"))
	perChunk := rapid.SampledFrom([]int{1, 7, 512}).Draw(t, "perChunk")
	data := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 3000), 0, 5).Draw(t, "data")
	answer, ends = readAnswer(kind, perChunk, data)
	return answer, ends, kind
}

// Whole answers pass unchanged, however they come and are asked for.
func TestPacketsPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer, _, _ := drawAnswer(t)
		var from io.Reader = bytes.NewReader(answer)
		if rapid.Bool().Draw(t, "bytewise") {
			from = iotest.OneByteReader(from)
		}
		p := &packets{receive: from.Read, buf: make([]byte, rapid.SampledFrom([]int{0, 10, 4096}).Draw(t, "buffer"))}
		var to io.Reader = p
		if rapid.Bool().Draw(t, "halves") {
			to = iotest.HalfReader(p)
		}
		got, err := io.ReadAll(to)
		if err != nil || !bytes.Equal(got, answer) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(answer), err)
		}
	})
}

// Of an answer that is cut or changed, only whole units before the damage pass.
func TestPacketsStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer, ends, kind := drawAnswer(t)
		at := rapid.IntRange(0, len(answer)-1).Draw(t, "at")
		damaged := bytes.Clone(answer)
		flip := rapid.Bool().Draw(t, "flip") && kind != 0
		if flip {
			damaged[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		} else {
			damaged = damaged[:at]
		}
		whole := 0
		for _, e := range ends {
			if e <= at {
				whole = e
			}
		}
		p := &packets{receive: bytes.NewReader(damaged).Read}
		got, err := io.ReadAll(p)
		if !bytes.HasPrefix(got, answer[:whole]) {
			t.Fatalf("%d bytes passed of the %d that are right", len(got), whole)
		}
		if !flip && len(got) != whole {
			t.Fatalf("%d bytes passed of the %d that are whole (%v)", len(got), whole, err)
		}
	})
}

// A flipped bit in data or checksums never passes.
func TestPacketsChecksums(t *testing.T) {
	answer, ends := readAnswer(2, 512, [][]byte{bytes.Repeat([]byte("x"), 1200)})
	for at := ends[1] - 1200 - 12; at < ends[1]; at++ {
		damaged := bytes.Clone(answer)
		damaged[at] ^= 4
		p := &packets{receive: bytes.NewReader(damaged).Read}
		got, err := io.ReadAll(p)
		if err != errBadChecksum || len(got) != ends[0] {
			t.Fatalf("byte %d: %d bytes passed, %v", at, len(got), err)
		}
	}
}

func FuzzPackets(f *testing.F) {
	answer, _ := readAnswer(2, 512, [][]byte{bytes.Repeat([]byte("x"), 1200), {}})
	f.Add(answer)
	answer, _ = readAnswer(0, 0, [][]byte{[]byte("abc")})
	f.Add(answer)
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &packets{receive: bytes.NewReader(b).Read}
		got, err := io.ReadAll(p)
		if !bytes.HasPrefix(b, got) {
			t.Fatal("other bytes passed than came")
		}
		if err == nil && len(got) != len(b) && len(p.buf) > 4*len(b)+8192 {
			t.Fatalf("a buffer of %d for %d bytes", len(p.buf), len(b))
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("getBlockLocations", response(1, fakeAnswer{body: field(nil, 1, located(5, true))})[4:])
	f.Add("create", response(1, fakeAnswer{body: field(nil, 1, status(5, 1))})[4:])
	f.Add("getFileInfo", response(1, fakeAnswer{exception: "java.io.IOException", message: "a\nb"})[4:])
	f.Fuzz(func(t *testing.T, method string, b []byte) {
		a := parseAnswer(method, b)
		if a.file.known && !tellsFileState(method) {
			t.Fatal("a file state from another method")
		}
		explainException("op", "uri", a)
		requestMethod(b)
	})
}
