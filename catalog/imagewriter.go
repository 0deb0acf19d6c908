package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog/imagepb"
	"hbackup/storage"
)

// Encode gives the manifest as it is stored. Files are ordered by their keys;
// two files with one key are an error.
func (im *Image) Encode() ([]byte, error) {
	files := im.Files
	if !slices.IsSortedFunc(files, CompareFiles) {
		files = slices.Clone(files)
		slices.SortFunc(files, CompareFiles)
	}
	var out bytes.Buffer
	out.Grow(4096 + 40*len(files))
	w, err := NewImageWriter(&out, im.Header)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if err := w.Add(files[i]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ImageWriter writes a manifest file by file; its memory does not grow with their
// number, but for some 100 bytes for each 4096 of them.
type ImageWriter struct {
	to     io.Writer
	totals Totals // what the header says
	added  Totals
	length int64
	last   File
	block  blockBuilder
	index  *imagepb.Index

	elsewhere referenceCheck
}

// NewImageWriter writes the head. The header's totals must be those of the files
// that follow; Close says so if they are not.
func NewImageWriter(to io.Writer, h Header) (*ImageWriter, error) {
	h.Format = ImageFormat
	if len(h.References) > 0 {
		h.Format = FormatWithReferences
	}
	if err := h.checkReferences(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	if len(text) > maxHeadBytes {
		return nil, fmt.Errorf("the head of the manifest has %d bytes, more than %d", len(text), maxHeadBytes)
	}
	w := &ImageWriter{to: to, totals: h.Totals, elsewhere: newReferenceCheck(h.References)}
	head := append([]byte(firstLine(h.Format, len(text))), text...)
	w.index = &imagepb.Index{HeadLength: uint64(len(head)), HeadDigest: uint64(storage.DigestOf(head))}
	return w, w.write(head)
}

// Add writes the next file. Files come in the order of CompareFiles.
func (w *ImageWriter) Add(f File) error {
	if err := f.validate(); err != nil {
		return err
	}
	if w.added.Files > 0 {
		switch c := compareFiles(&w.last, &f); {
		case c == 0:
			return fmt.Errorf("the file %s is listed twice", f.Key())
		case c > 0:
			return fmt.Errorf("the file %s is out of order", f.Key())
		}
	}
	if err := w.elsewhere.next(&f); err != nil {
		return err
	}
	w.last = f
	w.added.Files++
	w.added.Bytes += f.Size
	if err := w.block.add(&f); err != nil {
		return err
	}
	if len(w.block.pb.Sizes) == blockFiles {
		return w.flush()
	}
	return nil
}

// flush writes the block that is being filled.
func (w *ImageWriter) flush() error {
	n := len(w.block.pb.Sizes)
	if n == 0 {
		return nil
	}
	frame, err := pack(&w.block.pb)
	if err != nil {
		return err
	}
	w.index.Blocks = append(w.index.Blocks, &imagepb.BlockRef{Length: uint64(len(frame)), Digest: uint64(storage.DigestOf(frame)), Files: uint32(n), First: string(w.block.first.Key())})
	w.block.reset()
	return w.write(frame)
}

// Close writes the rest: without it there is no manifest.
func (w *ImageWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if w.added.Files != w.totals.Files || w.added.Bytes != w.totals.Bytes {
		return fmt.Errorf("the header counts %d files of %d bytes, %d of %d were added", w.totals.Files, w.totals.Bytes, w.added.Files, w.added.Bytes)
	}
	if err := w.elsewhere.end(); err != nil {
		return err
	}
	frame, err := pack(w.index)
	if err != nil {
		return err
	}
	end := tail{int64(len(frame)), storage.DigestOf(frame), w.length + int64(len(frame)+tailBytes)}
	return w.write(end.append(frame))
}

func (w *ImageWriter) write(b []byte) error {
	n, err := w.to.Write(b)
	w.length += int64(n)
	return err
}

func pack(m proto.Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxPartBytes {
		return nil, fmt.Errorf("a part of the manifest has %d bytes, more than %d", len(raw), maxPartBytes)
	}
	return packer.EncodeAll(raw, make([]byte, 0, len(raw)+64)), nil
}

// blockBuilder gathers files in columns.
type blockBuilder struct {
	pb       imagepb.Block
	first    File
	last     File
	tables   map[hbackup.TableName]uint32
	families map[hbackup.Family]uint32
	regions  map[hbackup.EncodedRegion]uint32
	places   map[string]uint32 // number of each other location, from 1
}

func (b *blockBuilder) reset() { *b = blockBuilder{} }

func (b *blockBuilder) add(f *File) error {
	n := len(b.pb.Sizes)
	if n == 0 {
		b.first = *f
		b.tables, b.families, b.regions = map[hbackup.TableName]uint32{}, map[hbackup.Family]uint32{}, map[hbackup.EncodedRegion]uint32{}
	}
	if n == 0 || !sameGroup(&b.last, f) {
		if err := b.startGroup(f); err != nil {
			return err
		}
	}
	b.last = *f
	b.pb.GroupFiles[len(b.pb.GroupFiles)-1]++
	if isHex32(f.Name) {
		b.pb.Names = appendHex(b.pb.Names, f.Name)
	} else {
		b.pb.OtherNames = append(b.pb.OtherNames, &imagepb.OtherName{File: uint32(n), Name: f.Name})
	}
	b.pb.Sizes = append(b.pb.Sizes, uint64(f.Size))
	b.pb.Digests = append(b.pb.Digests, uint64(f.Digest))
	b.pb.Cells = append(b.pb.Cells, uint64(f.Cells+1))
	b.place(n, f.Location)
	return nil
}

// place notes where the file number n lies. The column begins with the first file
// that lies elsewhere.
func (b *blockBuilder) place(n int, location string) {
	if location == "" && b.places == nil {
		return
	}
	if b.places == nil {
		b.places = map[string]uint32{}
		b.pb.FileLocation = make([]uint32, n, blockFiles)
	}
	number := b.places[location]
	if location != "" && number == 0 {
		b.pb.Locations = append(b.pb.Locations, location)
		number = uint32(len(b.pb.Locations))
		b.places[location] = number
	}
	b.pb.FileLocation = append(b.pb.FileLocation, number)
}

func (b *blockBuilder) startGroup(f *File) error {
	t, seen := b.tables[f.Table]
	if !seen {
		t = uint32(len(b.pb.Tables))
		b.tables[f.Table] = t
		b.pb.Tables = append(b.pb.Tables, f.Table.Namespace+":"+f.Table.Qualifier)
	}
	fam, seen := b.families[f.Family]
	if !seen {
		fam = uint32(len(b.pb.Families))
		b.families[f.Family] = fam
		b.pb.Families = append(b.pb.Families, string(f.Family))
	}
	r, seen := b.regions[f.Region]
	if !seen {
		r = uint32(len(b.pb.Regions) / 16)
		b.regions[f.Region] = r
		b.pb.Regions = appendHex(b.pb.Regions, string(f.Region))
	}
	b.pb.GroupTable = append(b.pb.GroupTable, t)
	b.pb.GroupFamily = append(b.pb.GroupFamily, fam)
	b.pb.GroupRegion = append(b.pb.GroupRegion, r)
	b.pb.GroupFiles = append(b.pb.GroupFiles, 0)
	return nil
}

func isHex32(s string) bool { return hbackup.EncodedRegion(s).Validate() == nil }

func appendHex(b []byte, s string) []byte {
	b, _ = hex.AppendDecode(b, []byte(s)) // the caller has checked the digits
	return b
}
