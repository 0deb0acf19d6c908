package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
)

const elsewhereID = "feedfeedfeedfeedfeedfeedfeedfeed"

func referenceFiles() []File {
	f := File{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Region: "0123456789abcdef0123456789abcdef", Family: "f", Size: 7, Digest: 9, Cells: 1}
	var files []File
	for i := range 3 {
		f.Name = fmt.Sprintf("%032x", i)
		files = append(files, f)
	}
	files[1].Location = elsewhereID
	return files
}

// An image without references is what it was, byte for byte of its first line, so
// that older readers take it. One with references is refused by them.
func TestOnlyAnImageWithReferencesIsOfTheNewFormat(t *testing.T) {
	files := referenceFiles()
	for want, files := range map[string][]File{"hbackup image 2, ": files[:1], "hbackup image 3, ": files} {
		b, err := testImage(files).Encode()
		if err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%q, %v", b[:min(len(b), 30)], err)
		}
		im, err := DecodeImage(b)
		if err != nil || len(im.Files) != len(files) || len(im.References) > 1 {
			t.Errorf("%+v, %v", im, err)
		}
	}
}

// Where a file lies is never told by half: head and list must agree.
func TestAnImageWhoseReferencesDisagreeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Image){
		"none in the head":    func(im *Image) { im.References = nil },
		"another location":    func(im *Image) { im.References[0].Location = strings.Repeat("0", 32) },
		"no location id":      func(im *Image) { im.References[0].Location, im.Files[1].Location = "old", "old" },
		"one file too many":   func(im *Image) { im.References[0].Files++ },
		"one byte too few":    func(im *Image) { im.References[0].Bytes-- },
		"named twice":         func(im *Image) { im.References = append(im.References, im.References[0]) },
		"one that has none":   func(im *Image) { im.Files[1].Location = "" },
		"a file it has not":   func(im *Image) { im.Files[2].Location = strings.Repeat("1", 32) },
		"a reference to \"\"": func(im *Image) { im.References[0].Location = "" },
	} {
		im := testImage(referenceFiles())
		spoil(im)
		if _, err := im.Encode(); err == nil {
			t.Errorf("%s: encoded", name)
		}
		// A writer that does not look makes what the reader must refuse.
		var out bytes.Buffer
		good := testImage(referenceFiles())
		w, err := NewImageWriter(&out, good.Header)
		if err != nil {
			t.Fatal(err)
		}
		im.Format = good.Format
		text, err := json.Marshal(im.Header)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		w.length = 0
		head := append([]byte(firstLine(im.Format, len(text))), text...)
		w.index.HeadLength, w.index.HeadDigest = uint64(len(head)), uint64(storage.DigestOf(head))
		if err := w.write(head); err != nil {
			t.Fatal(err)
		}
		for _, f := range im.Files {
			w.elsewhere = newReferenceCheck([]Reference{{Location: f.Location}})
			if err := w.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		w.elsewhere = referenceCheck{}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeImage(out.Bytes()); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
}

// The column begins with the first file that lies elsewhere, wherever that is.
func TestReferencesAcrossBlocks(t *testing.T) {
	im := manyFiles(10, 2*blockFiles+10)
	for _, i := range []int{blockFiles - 1, blockFiles, 2*blockFiles + 9} {
		im.Files[i].Location = elsewhereID
	}
	im = testImage(im.Files)
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeImage(b)
	if err != nil || got.References[0].Files != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range im.Files {
		if got.Files[i] != im.Files[i] {
			t.Fatalf("file %d is %+v", i, got.Files[i])
		}
	}
}

// The vector is a manifest with a reference as it was first written.
func TestReferenceVector(t *testing.T) {
	want := testImage(referenceFiles())
	want.ID, want.Backup = "20261130T230501.123Z-7f3k2m9q4x.0003", "20261130T230501.123Z-7f3k2m9q4x"
	file := filepath.Join("testdata", "references.image")
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
	if got, err := DecodeImage(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v\n%v", got, want, err)
	}
}
