package hfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"hbackup"
)

// frame writes units of segments, and units of nothing, as Hadoop may.
func frame(t *rapid.T, plain []byte, segment func([]byte) []byte) []byte {
	var out []byte
	for {
		if rapid.IntRange(0, 4).Draw(t, "empty unit") == 0 {
			out = binary.BigEndian.AppendUint32(out, 0)
		}
		if len(plain) == 0 {
			return out
		}
		unit := plain[:rapid.IntRange(1, len(plain)).Draw(t, "unit")]
		plain = plain[len(unit):]
		out = binary.BigEndian.AppendUint32(out, uint32(len(unit)))
		for len(unit) > 0 {
			part := unit[:rapid.IntRange(1, len(unit)).Draw(t, "segment")]
			unit = unit[len(part):]
			packed := segment(part)
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(packed))), packed...)
		}
	}
}

var plainGen = rapid.Custom(func(t *rapid.T) []byte {
	word := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "word")
	b := bytes.Repeat(word, rapid.IntRange(0, 50).Draw(t, "times"))
	return append(b, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "tail")...)
})

func TestCodecs(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	pack := map[Codec]func(*rapid.T, []byte) []byte{
		None: func(_ *rapid.T, b []byte) []byte { return b },
		GZ: func(_ *rapid.T, b []byte) []byte {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			z.Write(b)
			z.Close()
			return out.Bytes()
		},
		Snappy: func(t *rapid.T, b []byte) []byte {
			return frame(t, b, func(b []byte) []byte { return s2.EncodeSnappy(nil, b) })
		},
		LZ4: func(t *rapid.T, b []byte) []byte { return frame(t, b, packLZ4) },
		ZSTD: func(t *rapid.T, b []byte) []byte {
			if rapid.Bool().Draw(t, "bare") && len(b) > 0 {
				return enc.EncodeAll(b, nil)
			}
			return frame(t, b, func(b []byte) []byte { return enc.EncodeAll(b, nil) })
		},
	}
	for codec, f := range pack {
		t.Run(codec.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				plain := plainGen.Draw(t, "plain")
				packed := f(t, plain)
				got, err := decompress(codec, packed, len(plain))
				if err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("%d bytes, not %d, %v", len(got), len(plain), err)
				}
				for _, size := range []int{len(plain) + 1, len(plain) - 1} {
					if size < 0 {
						continue
					}
					if _, err := decompress(codec, packed, size); !hbackup.IsKind(err, hbackup.KindCorrupt) {
						t.Fatalf("taken for %d bytes instead of %d: %v", size, len(plain), err)
					}
				}
			})
		})
	}
	if _, err := decompress(LZO, nil, 0); !hbackup.IsKind(err, hbackup.KindUnsupported) {
		t.Errorf("LZO: %v", err)
	}
}

// packLZ4 is a plain LZ4 block compressor that looks for repetitions near by.
func packLZ4(b []byte) []byte {
	var out []byte
	emit := func(literals []byte, distance, match int) {
		token := byte(min(len(literals), 15) << 4)
		if match > 0 {
			token |= byte(min(match-4, 15))
		}
		out = appendLZ4Length(append(out, token), len(literals))
		out = append(out, literals...)
		if match > 0 {
			out = appendLZ4Length(binary.LittleEndian.AppendUint16(out, uint16(distance)), match-4)
		}
	}
	start := 0
	for i := 0; i < len(b); {
		best, at := 0, 0
		for d := 1; d <= min(i, 40); d++ {
			n := 0
			for i+n < len(b)-5 && b[i+n] == b[i+n-d] {
				n++
			}
			if n > best {
				best, at = n, d
			}
		}
		if best < 4 {
			i++
			continue
		}
		emit(b[start:i], at, best)
		i += best
		start = i
	}
	emit(b[start:], 0, 0)
	return out
}

func appendLZ4Length(out []byte, n int) []byte {
	if n < 15 {
		return out
	}
	for n -= 15; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(out, byte(n))
}

func FuzzDecompress(f *testing.F) {
	f.Add(int32(Snappy), []byte{0, 0, 0, 3, 0, 0, 0, 5, 3, 8, 'a', 'b', 'c'}, uint16(3))
	f.Add(int32(LZ4), []byte{0, 0, 0, 3, 0, 0, 0, 4, 0x30, 'a', 'b', 'c'}, uint16(3))
	f.Add(int32(ZSTD), []byte{0x28, 0xb5, 0x2f, 0xfd, 0}, uint16(3))
	f.Add(int32(GZ), []byte{0x1f, 0x8b}, uint16(3))
	f.Fuzz(func(t *testing.T, codec int32, b []byte, size uint16) {
		got, err := decompress(Codec(codec%9), b, int(size))
		if err == nil && len(got) != int(size) {
			t.Fatalf("%d bytes, not %d", len(got), size)
		}
		if err != nil && hbackup.KindOf(err) == hbackup.KindOther {
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}
