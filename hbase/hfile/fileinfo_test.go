package hfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
)

func TestReadRealFiles(t *testing.T) {
	for name, b := range testFiles(t) {
		r := bytes.NewReader(b)
		trailer, err := ReadTrailer(r, int64(len(b)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := verify(b)
		if err != nil || trailer.Entries != s.Entries || trailer.Compression != s.Compression || trailer.Encrypted() != s.Encrypted {
			t.Errorf("%s: %+v, %+v, %v", name, trailer, s, err)
		}
		if name == "2.6-levels" && trailer.DataIndexLevels < 2 {
			t.Errorf("%s: %d index levels", name, trailer.DataIndexLevels)
		}
		info, err := ReadFileInfo(r, trailer)
		if trailer.Encrypted() {
			if !hbackup.IsKind(err, hbackup.KindUnsupported) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id, ok := info.MaxSeqID(); ok != (s.MaxSeqID >= 0) || ok && id != s.MaxSeqID {
			t.Errorf("%s: sequence ids %d and %d", name, id, s.MaxSeqID)
		}
		if len(info[KeyLastKey]) < 12 {
			t.Errorf("%s: the last key is %q", name, info[KeyLastKey])
		}
		encoding := string(info[KeyDataBlockEncoding])
		for word, want := range map[string]string{"fastdiff": "FAST_DIFF", "gz_diff": "DIFF", "rowindex": "ROW_INDEX_V1", "prefix": "PREFIX"} {
			if strings.Contains(name, word) && encoding != want {
				t.Errorf("%s: the encoding is %q", name, encoding)
			}
		}
		if strings.Contains(name, "bulk") {
			if _, ok := info.Int64(KeyBulkLoadTime); !ok {
				t.Errorf("%s: no time of the bulk load", name)
			}
		} else if v, ok := info.Int32(KeyKeyValueVersion); !ok || v != 1 {
			t.Errorf("%s: cells without sequence ids", name)
		}
	}
}

// A damaged file info block is an error.
func TestDamagedFileInfo(t *testing.T) {
	b := testFiles(t)["2.6-none"]
	trailer, err := ReadTrailer(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	h, payload, err := readBlock(bytes.NewReader(b), trailer.FileInfoOffset, true, maxFileInfo)
	if err != nil || int64(len(payload)) != h.uncompressed {
		t.Fatalf("%+v, %v", h, err)
	}
	for i := trailer.FileInfoOffset; i < trailer.FileInfoOffset+headerSize+h.onDisk; i++ {
		b[i] ^= 4
		if _, err := ReadFileInfo(bytes.NewReader(b), trailer); !hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete) {
			t.Errorf("byte %d: %v", i, err)
		}
		b[i] ^= 4
	}
	for _, offset := range []int64{0, 1, int64(len(b)) - 10, int64(len(b)) + 10, trailer.LoadOnOpenOffset} {
		wrong := trailer
		wrong.FileInfoOffset = offset
		if _, err := ReadFileInfo(bytes.NewReader(b), wrong); err == nil {
			t.Errorf("a file info was read at %d", offset)
		}
	}
}

func TestMadeFileInfo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "entries")
		info, err := parseFileInfo(madeInfo(want))
		if err != nil || len(info) != len(want) {
			t.Fatalf("%v, %v", info, err)
		}
		for k, v := range want {
			if string(info[k]) != v {
				t.Fatalf("%q is %q, not %q", k, info[k], v)
			}
		}
		old := binary.BigEndian.AppendUint32(nil, uint32(len(want)))
		for k, v := range want {
			old = append(appendVint(old, int64(len(k))), k...)
			old = append(appendVint(append(old, 1), int64(len(v))), v...)
		}
		if bytes.HasPrefix(old, []byte("PBUF")) {
			return
		}
		info, err = parseFileInfo(old)
		if err != nil || len(info) != len(want) {
			t.Fatalf("old: %v, %v", info, err)
		}
		for k, v := range want {
			if string(info[k]) != v {
				t.Fatalf("old: %q is %q, not %q", k, info[k], v)
			}
		}
	})
}

// appendVint writes Hadoop's variable-length number.
func appendVint(b []byte, n int64) []byte {
	if n >= -112 && n <= 127 {
		return append(b, byte(n))
	}
	first := -112
	if n < 0 {
		n, first = ^n, -120
	}
	size := 1
	for n>>(8*size) != 0 && size < 8 {
		size++
	}
	b = append(b, byte(int8(first-size)))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

func TestVint(t *testing.T) {
	for n, want := range map[int64][]byte{0: {0}, 127: {127}, -112: {0x90}, 128: {0x8f, 0x80}, 256: {0x8e, 1, 0}, -113: {0x87, 0x70}} {
		if got := appendVint(nil, n); !bytes.Equal(got, want) {
			t.Errorf("%d is written as %x", n, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-300, 300), rapid.Just(int64(math.MinInt64))).Draw(t, "n")
		b := appendVint(nil, n)
		got, used := vint(append(b, 9))
		if got != n || used != len(b) {
			t.Fatalf("%d from %d of %d bytes", got, used, len(b))
		}
		if _, used := vint(b[:len(b)-1]); used != 0 {
			t.Fatalf("%d bytes of a cut number were used", used)
		}
	})
}

func FuzzTrailer(f *testing.F) {
	for _, b := range testFiles(f) {
		f.Add(b[len(b)-trailerSize:])
	}
	b := madeFile{major: 2, minor: 0}.make()
	f.Add(b[len(b)-trailerSizeV2:])
	f.Fuzz(func(t *testing.T, b []byte) {
		trailer, err := ReadTrailer(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if hbackup.KindOf(err) == hbackup.KindOther {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if trailer.FileInfoOffset < 0 || trailer.FileInfoOffset >= int64(len(b)) || trailer.Entries < 0 {
			t.Fatalf("%+v", trailer)
		}
		ReadFileInfo(bytes.NewReader(b), trailer)
	})
}

func FuzzFileInfo(f *testing.F) {
	f.Add(madeInfo(map[string]string{"a": "b", KeyMaxSeqID: "12345678"}))
	f.Add([]byte{0, 0, 0, 1, 1, 'k', 1, 1, 'v'})
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := parseFileInfo(b)
		if err != nil && !hbackup.IsKind(err, hbackup.KindCorrupt) {
			t.Fatal(err)
		}
		size := 0
		for k, v := range info {
			size += len(k) + len(v)
		}
		if size > len(b) {
			t.Fatalf("%d bytes out of %d", size, len(b))
		}
	})
}

// shortReader ends before the size that its owner claims.
type shortReader struct{ io.ReaderAt }

func TestShortFile(t *testing.T) {
	b := testFiles(t)["2.6-none"]
	_, err := ReadTrailer(shortReader{bytes.NewReader(b[:5000])}, int64(len(b)))
	if !hbackup.IsKind(err, hbackup.KindIncomplete) {
		t.Errorf("%v", err)
	}
}
