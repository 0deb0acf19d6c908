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

	"hbackup/internal/hadoop"
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

// drawAnswer makes an answer and what of it the library is to see: the same
// without checksums.
func drawAnswer(t *rapid.T) (answer []byte, ends []int, seen []byte, seenEnds []int, kind uint64) {
	kind = uint64(rapid.IntRange(0, 2).Draw(t, "kind"))
	perChunk := rapid.SampledFrom([]int{1, 7, 512}).Draw(t, "perChunk")
	data := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 3000), 0, 5).Draw(t, "data")
	answer, ends = readAnswer(kind, perChunk, data)
	seen, seenEnds = readAnswer(0, perChunk, data)
	return answer, ends, seen, seenEnds, kind
}

// readInPieces reads as the library does, in pieces of odd lengths.
func readInPieces(t *rapid.T, r io.Reader) ([]byte, error) {
	var got []byte
	for {
		b := make([]byte, rapid.SampledFrom([]int{1, 25, 600, 2999, 4000}).Draw(t, "piece"))
		n, err := r.Read(b)
		got = append(got, b[:n]...)
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

// The data of whole answers pass unchanged, however they come and are asked for.
func TestPacketsPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer, _, seen, _, _ := drawAnswer(t)
		var from io.Reader = bytes.NewReader(answer)
		switch rapid.IntRange(0, 3).Draw(t, "come") {
		case 0:
			from = iotest.OneByteReader(from)
		case 1:
			from = iotest.HalfReader(from)
		case 2:
			from = iotest.DataErrReader(from)
		}
		got, err := readInPieces(t, &packets{receive: from.Read})
		if err != nil || !bytes.Equal(got, seen) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(seen), err)
		}
	})
}

// Of an answer that is cut or changed, no data pass but of whole packets before
// the damage.
func TestPacketsStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer, ends, seen, seenEnds, kind := drawAnswer(t)
		at := rapid.IntRange(0, len(answer)-1).Draw(t, "at")
		damaged := bytes.Clone(answer)
		flip := rapid.Bool().Draw(t, "flip") && kind != 0
		if flip {
			damaged[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		} else {
			damaged = damaged[:at]
		}
		whole, next := 0, len(seen) // before the damage, and with the head of the damaged packet
		for i, e := range ends {
			if e <= at {
				whole = seenEnds[i]
			} else {
				next = seenEnds[i]
				break
			}
		}
		got, err := readInPieces(t, &packets{receive: bytes.NewReader(damaged).Read})
		if len(got) < whole || !bytes.Equal(got[:whole], seen[:whole]) {
			t.Fatalf("%d bytes passed of the %d that are right (%v)", len(got), whole, err)
		}
		if !flip && len(got) >= next {
			t.Fatalf("%d bytes passed, a packet that is cut ends at %d", len(got), next)
		}
	})
}

// A flipped bit in data or checksums never passes.
func TestPacketsChecksums(t *testing.T) {
	answer, ends := readAnswer(2, 512, [][]byte{bytes.Repeat([]byte("x"), 1200)})
	_, seenEnds := readAnswer(0, 512, [][]byte{bytes.Repeat([]byte("x"), 1200)})
	for at := ends[1] - 1200 - 12; at < ends[1]; at++ {
		for _, piece := range []int{100, 1200, 5000} {
			damaged := bytes.Clone(answer)
			damaged[at] ^= 4
			var got []byte
			var err error
			for p := (&packets{receive: bytes.NewReader(damaged).Read}); err == nil; {
				b := make([]byte, piece)
				var n int
				n, err = p.Read(b)
				got = append(got, b[:n]...)
			}
			if err != errBadChecksum || len(got) != seenEnds[1]-1200 {
				t.Fatalf("byte %d: %d bytes passed, %v", at, len(got), err)
			}
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
		if err != nil {
			return
		}
		if len(got) > len(b)+maxPacket/1000 {
			t.Fatalf("%d bytes passed of %d", len(got), len(b))
		}
		// What passed has no checksums, and passes as it is.
		again, err := io.ReadAll(&packets{receive: bytes.NewReader(got).Read})
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("of %d bytes that passed %d pass again: %v", len(got), len(again), err)
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
		hadoop.Explain("op", "uri", a.exception, a.message)
		requestMethod(b)
	})
}
