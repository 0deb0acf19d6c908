package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup"
	"hbackup/catalog/imagepb"
	"hbackup/storage"
)

var update = flag.Bool("update", false, "write the vectors anew")

var hex32 = rapid.Custom(func(t *rapid.T) string {
	return hex.EncodeToString(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "raw"))
})

var fileName = rapid.Custom(func(t *rapid.T) string {
	base := hex32.Draw(t, "hex")
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return base
	case 1:
		return fmt.Sprintf("%s_SeqId_%d_", base, rapid.Uint64().Draw(t, "seq"))
	case 2:
		return base + "_SeqId_007_" // not what the short form would rebuild
	case 3:
		return base + "20261130" + base + "_" + hex32.Draw(t, "region")
	}
	return base[:20] + "_del"
})

var tableName = rapid.Map(rapid.SampledFrom([]string{"orders", "ns:orders", "ns:orders-1", "ns:orders.1", "größe:tab_1"}),
	func(s string) hbackup.TableName { n, _ := hbackup.ParseTableName(s); return n })

var anyFile = rapid.Custom(func(t *rapid.T) File {
	return File{
		Table:  tableName.Draw(t, "table"),
		Region: hbackup.EncodedRegion(hex32.Draw(t, "region")),
		Family: hbackup.Family(rapid.SampledFrom([]string{"f", "f-1", "f.", "very long family", "é"}).Draw(t, "family")),
		Name:   fileName.Draw(t, "name"),
		Size:   rapid.Int64Range(0, 1<<62).Draw(t, "size") / 1000,
		Digest: storage.Digest(rapid.Uint64().Draw(t, "digest")),
		Cells:  rapid.Int64Range(-1, 1<<60).Draw(t, "cells"),

		Location: rapid.SampledFrom([]string{"", "", "00000000000000000000000000000001", "feedfeedfeedfeedfeedfeedfeedfeed"}).Draw(t, "location"),
	}
})

func testImage(files []File) *Image {
	id := hbackup.NewBackupID(time.UnixMilli(1796079901123))
	im := &Image{Files: files, Header: Header{
		Format: ImageFormat, ID: id.Image(3), Backup: id, Cluster: "prod", ClusterID: "abc", HBaseVersion: "2.6.4",
		Table:     hbackup.TableName{Namespace: "ns", Qualifier: "orders"},
		Namespace: map[string]string{"k": "v"}, SourceSnapshot: "hbackup.prod.x",
		SnapshotStarted: time.UnixMilli(1796079900000).UTC(), SnapshotFinished: time.UnixMilli(1796079900999).UTC(),
		Snapshot: []SnapshotFile{{Name: DataManifestFile, Size: 12, Digest: 34}}, Writer: "test",
	}}
	im.References = ReferencesOf(files, func(id string) storage.Location { return storage.Location("s3://" + id) })
	if im.References != nil {
		im.Format = FormatWithReferences
	}
	im.Totals.Files = len(files)
	for _, f := range files {
		im.Totals.Bytes += f.Size
		im.Totals.Cells += max(f.Cells, 0)
	}
	return im
}

func TestImageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.SliceOfNDistinct(anyFile, 0, 40, func(f File) storage.Key { return f.Key() }).Draw(t, "files")
		im := testImage(files)
		b, err := im.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeImage(b)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(files)
		slices.SortFunc(want, func(a, b File) int { return strings.Compare(string(a.Key()), string(b.Key())) })
		if !slices.Equal(got.Files, want) {
			t.Fatalf("files differ, or are not in the order of their keys:\n%v\n%v", got.Files, want)
		}
		if !reflect.DeepEqual(got.Header, im.Header) {
			t.Fatalf("headers differ:\n%+v\n%+v", got.Header, im.Header)
		}
		h, err := DecodeHeader(b)
		if err != nil || !reflect.DeepEqual(h, im.Header) {
			t.Fatalf("header alone: %+v, %v", h, err)
		}
		again, err := got.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("encoding again gives other bytes (%v)", err)
		}
	})
}

func TestImageDamageIsFound(t *testing.T) {
	f := File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: "00112233445566778899aabbccddeeff", Size: 7, Digest: 9, Cells: 1}
	whole, err := testImage([]File{f}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := DecodeImage(whole[:n]); err == nil {
			t.Fatalf("a manifest cut to %d of %d bytes was read", n, len(whole))
		}
		for bit := range 8 {
			broken := slices.Clone(whole)
			broken[n] ^= 1 << bit
			if _, err := DecodeImage(broken); err == nil {
				t.Fatalf("a manifest with bit %d of byte %d flipped was read", bit, n)
			}
		}
	}
	if _, err := DecodeImage(append(slices.Clone(whole), 0)); err == nil {
		t.Error("a manifest with a byte too many was read")
	}
}

func TestImageOfAnotherFormatIsRefusedByName(t *testing.T) {
	for _, first := range []string{"hbackup image 4, head of 7 bytes", "hbackup image 1"} {
		_, err := DecodeImage([]byte(first + "\nwhatever follows, this reader cannot know"))
		if !hbackup.IsKind(err, hbackup.KindUnsupported) || !strings.Contains(err.Error(), first) {
			t.Fatalf("got %v", err)
		}
		if hbackup.HintOf(err) == "" {
			t.Error("no hint")
		}
	}
}

// The files come in blocks; a part of them is read without the others.
func TestImageInManyBlocks(t *testing.T) {
	im := manyFiles(100, 3*blockFiles+7)
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	from := &countingReader{r: bytes.NewReader(b)}
	r, err := OpenImage(from, int64(len(b)))
	if err != nil || len(r.refs) != 4 {
		t.Fatalf("%d blocks, %v", len(r.refs), err)
	}
	n := 0
	for f, err := range r.Files() {
		if err != nil || f != im.Files[n] {
			t.Fatalf("file %d is %+v, not %+v (%v)", n, f, im.Files[n], err)
		}
		n++
	}
	if n != len(im.Files) {
		t.Fatalf("%d files", n)
	}
	for region := range 101 {
		prefix := fmt.Sprintf("archive/data/ns/orders/%032x/", region)
		var want, got []File
		for _, f := range im.Files {
			if strings.HasPrefix(string(f.Key()), prefix) {
				want = append(want, f)
			}
		}
		from.bytes = 0
		for f, err := range r.FilesIn(prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, f)
		}
		if !slices.Equal(got, want) || (region < 100) != (len(want) > 0) {
			t.Fatalf("region %d: %d files, not %d", region, len(got), len(want))
		}
		if from.bytes > len(b)*3/4 {
			t.Fatalf("region %d: %d of %d bytes were read", region, from.bytes, len(b))
		}
	}
}

type countingReader struct {
	r     *bytes.Reader
	bytes int
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	c.bytes += len(b)
	return c.r.ReadAt(b, at)
}

// The totals are in the head, before the files: they must be what follows.
func TestTotalsMustBeThoseOfTheFiles(t *testing.T) {
	im := manyFiles(1, 3)
	for _, spoil := range []func(*Totals){func(t *Totals) { t.Files++ }, func(t *Totals) { t.Bytes-- }} {
		h := im.Header
		spoil(&h.Totals)
		if _, err := (&Image{Header: h, Files: im.Files}).Encode(); err == nil {
			t.Errorf("%+v was encoded", h.Totals)
		}
		w, err := NewImageWriter(io.Discard, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(im.Files[1]); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(im.Files[0]); err == nil {
			t.Error("a file out of order was written")
		}
	}
}

// The vector is a manifest as it was first written, and the raw block in it.
func TestImageVector(t *testing.T) {
	want := testImage([]File{
		{Table: hbackup.TableName{Namespace: "default", Qualifier: "old"}, Region: "00000000000000000000000000000001", Family: "f", Name: "00112233445566778899aabbccddeeff", Size: 1, Digest: 2, Cells: -1},
		{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: "00112233445566778899aabbccddeeff", Size: 1 << 40, Digest: 0xfedcba9876543210, Cells: 300},
		{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: "10112233445566778899aabbccddeeff_SeqId_4_", Size: 0, Digest: 0, Cells: 0},
	})
	want.ID, want.Backup = "20261130T230501.123Z-7f3k2m9q4x.0003", "20261130T230501.123Z-7f3k2m9q4x"
	file := filepath.Join("testdata", "three.image")
	if *update {
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeImage(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\n%+v\n%v", got, want, err)
	}
	r, err := OpenImage(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	frame := b[r.starts[0] : r.starts[0]+int64(r.refs[0].Length)]
	raw, err := unpacker.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	const block = "0a0b64656661756c743a6f6c640a096e733a6f7264657273120166" +
		"1a20000000000000000000000000000000010123456789abcdef0123456789abcdef" +
		"220200012a020000320200013a020102" +
		"422000112233445566778899aabbccddeeff00112233445566778899aabbccddeeff" +
		"4a2d0802122931303131323233333434353536363737383839396161626263636464656566665f53657149645f345f" +
		"520801808080808020005a1802000000000000001032547698badcfe0000000000000000620400ad0201"
	if got := hex.EncodeToString(raw); got != block {
		t.Errorf("the block is\n%s", got)
	}
}

func TestEncodeRefusesWhatNoPathMayHold(t *testing.T) {
	good := File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: "00112233445566778899aabbccddeeff"}
	for name, spoil := range map[string]func(*File){
		"family":   func(f *File) { f.Family = "../f" },
		"name":     func(f *File) { f.Name = "../../x" },
		"dots":     func(f *File) { f.Name = ".." },
		"region":   func(f *File) { f.Region = "x" },
		"table":    func(f *File) { f.Table.Qualifier = "a/b" },
		"negative": func(f *File) { f.Size = -1 },
	} {
		f := good
		spoil(&f)
		if _, err := testImage([]File{f}).Encode(); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
	if _, err := testImage([]File{good, good}).Encode(); err == nil {
		t.Error("the same file twice was encoded")
	}
}

func FuzzDecodeImage(f *testing.F) {
	file := File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: "00112233445566778899aabbccddeeff_SeqId_4_", Size: 7}
	var block blockBuilder
	if err := block.add(&file); err != nil {
		f.Fatal(err)
	}
	raw, err := proto.Marshal(&block.pb)
	if err != nil {
		f.Fatal(err)
	}
	im := testImage([]File{file})
	head, err := json.Marshal(im.Header)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(head, raw, uint32(1), string(file.Key()), false)
	f.Fuzz(func(t *testing.T, head, block []byte, files uint32, first string, elsewhere bool) {
		format := ImageFormat
		if elsewhere {
			format = FormatWithReferences
		}
		// The digests would keep nearly every input out, so they are made right here.
		if len(head) == 0 || len(head) > 1<<20 {
			return
		}
		b := append([]byte(firstLine(format, len(head))), head...)
		frame := packer.EncodeAll(block, nil)
		index, err := pack(&imagepb.Index{HeadLength: uint64(len(b)), HeadDigest: uint64(storage.DigestOf(b)),
			Blocks: []*imagepb.BlockRef{{Length: uint64(len(frame)), Digest: uint64(storage.DigestOf(frame)), Files: files, First: first}}})
		if err != nil {
			return
		}
		b = append(append(b, frame...), index...)
		b = tail{int64(len(index)), storage.DigestOf(index), int64(len(b) + tailBytes)}.append(b)
		im, err := DecodeImage(b)
		if err != nil {
			return
		}
		again, err := im.Encode()
		if err != nil {
			t.Fatalf("decoded and cannot be encoded: %v", err)
		}
		if _, err := DecodeImage(again); err != nil {
			t.Fatalf("encoded again and cannot be decoded: %v", err)
		}
	})
}

// manyFiles makes an image of so many files in so many regions.
func manyFiles(regions, n int) *Image {
	files := make([]File, 0, n)
	for i := range n {
		r := i * regions / n
		files = append(files, File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: hbackup.EncodedRegion(fmt.Sprintf("%032x", r)),
			Family: "f", Name: fmt.Sprintf("%016x%016x", i, uint64(i)*0x9e3779b97f4a7c15), Size: 1<<20 + int64(i), Digest: storage.Digest(uint64(i) * 0xd1342543de82ef95), Cells: 1000 + int64(i)})
	}
	return testImage(files)
}

func millionFiles() *Image { return manyFiles(300_000, 1_000_000) }

func BenchmarkEncodeMillionFiles(b *testing.B) {
	im := millionFiles()
	for b.Loop() {
		out, err := im.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(out))/1e6, "B/file")
	}
}

func BenchmarkDecodeMillionFiles(b *testing.B) {
	raw, err := millionFiles().Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeImage(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// The same list as one JSON document is what the format is compared with.
func BenchmarkDecodeMillionFilesAsJSON(b *testing.B) {
	raw, err := json.Marshal(millionFiles().Files)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var files []File
		if err := json.Unmarshal(raw, &files); err != nil {
			b.Fatal(err)
		}
	}
}

// docs/format.md shows the messages as they are.
func TestTheFormatIsDocumented(t *testing.T) {
	source, err := os.ReadFile("imagepb/image.proto")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, messages, found := strings.Cut(string(source), "go_package = \"hbackup/catalog/imagepb\";\n\n")
	if !found || !strings.Contains(string(doc), "```proto\n"+messages+"```\n") {
		t.Error("docs/format.md shows other messages than imagepb/image.proto")
	}
	if !strings.Contains(string(doc), "`"+firstLine(ImageFormat, 7)[:len("hbackup image 2, head of ")]) {
		t.Error("docs/format.md shows another first line")
	}
}

// A head that is said to reach into the index is refused before any length is
// believed: with a block of a length that wraps around, everything would seem to fit.
func TestAHeadThatReachesIntoTheIndex(t *testing.T) {
	const head = 1000
	for indexLength := uint64(20); indexLength < 200; indexLength++ {
		line := firstLine(ImageFormat, head)
		index, err := proto.Marshal(&imagepb.Index{HeadLength: uint64(len(line) + head), Blocks: []*imagepb.BlockRef{{Length: -indexLength, Files: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		frame := packer.EncodeAll(index, nil)
		if uint64(len(frame)) != indexLength {
			continue
		}
		b := append([]byte(line), make([]byte, head-len(frame))...)
		b = append(b, frame...)
		b = tail{int64(len(frame)), storage.DigestOf(frame), int64(len(b) + tailBytes)}.append(b)
		if _, err := OpenImage(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), "within the head") {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Fatal("no such manifest could be made")
}
