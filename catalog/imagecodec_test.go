package catalog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/storage"
)

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

func TestImageOfANewerFormatIsRefusedByName(t *testing.T) {
	_, err := DecodeImage([]byte("hbackup image 2\nwhatever follows, an old reader cannot know"))
	if !hbackup.IsKind(err, hbackup.KindUnsupported) || !strings.Contains(err.Error(), "hbackup image 2") {
		t.Fatalf("got %v", err)
	}
	if hbackup.HintOf(err) == "" {
		t.Error("no hint")
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
	b, _ := testImage([]File{file}).Encode()
	f.Add(b[len(imageMagic) : len(b)-imageTail])
	f.Fuzz(func(t *testing.T, body []byte) {
		// The digest would keep nearly every input out, so it is made right here.
		b := append([]byte(imageMagic), body...)
		b = appendTail(b)
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

func millionFiles() *Image {
	files := make([]File, 0, 1_000_000)
	for r := range 10_000 {
		for n := range 100 {
			files = append(files, File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: hbackup.EncodedRegion(fmt.Sprintf("%032x", r)),
				Family: "f", Name: fmt.Sprintf("%016x%016x", r*7919, n), Size: 1 << 20, Digest: storage.Digest(r * n), Cells: 1000})
		}
	}
	return testImage(files)
}

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
	for b.Loop() {
		if _, err := DecodeImage(raw); err != nil {
			b.Fatal(err)
		}
	}
}
