package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog/imagepb"
	"hbackup/storage"
)

// DecodeImage reads a manifest and checks it whole: its end mark, lengths and
// digests, every name, the order, and the totals against the files.
func DecodeImage(b []byte) (*Image, error) {
	r, err := OpenImage(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	im := &Image{Header: r.Header()}
	im.Files = make([]File, 0, min(max(im.Totals.Files, 0), r.files, len(b)))
	for i := range r.refs {
		if im.Files, err = r.block(im.Files, i); err != nil {
			return nil, err
		}
	}
	return im, im.check()
}

// DecodeHeader reads only the header, and of the rest checks the end mark, the
// index and the lengths.
func DecodeHeader(b []byte) (Header, error) {
	r, err := OpenImage(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return Header{}, err
	}
	return r.Header(), nil
}

// check compares the header's totals with the files and the files' order.
func (im *Image) check() error {
	c := newOrderCheck(&im.Header)
	for i := range im.Files {
		if err := c.next(&im.Files[i]); err != nil {
			return err
		}
	}
	return c.against(im.Totals)
}

// orderCheck goes along the files of an image, which are good one by one.
type orderCheck struct {
	last  *File
	files int
	bytes int64

	elsewhere referenceCheck
}

func newOrderCheck(h *Header) orderCheck {
	return orderCheck{elsewhere: newReferenceCheck(h.References)}
}

func (c *orderCheck) next(f *File) error {
	if c.last != nil && !c.last.before(f) {
		return fmt.Errorf("the file %s is out of order", f.Key())
	}
	if c.bytes > math.MaxInt64-f.Size {
		return fmt.Errorf("the sizes of the files add up to more than a number can hold")
	}
	c.last = f
	c.files++
	c.bytes += f.Size
	return c.elsewhere.next(f)
}

func (c *orderCheck) against(t Totals) error {
	if t.Files != c.files || t.Bytes != c.bytes {
		return fmt.Errorf("the header counts %d files of %d bytes, the list has %d of %d", t.Files, t.Bytes, c.files, c.bytes)
	}
	return c.elsewhere.end()
}

// ImageReader reads a manifest part by part.
type ImageReader struct {
	from   io.ReaderAt
	format int
	header Header
	refs   []*imagepb.BlockRef
	starts []int64 // where each block begins
	files  int     // by the index
	path   string  // of the manifest, when it is in a location
}

// OpenImage reads head, index and tail of a manifest of that many bytes and checks
// them.
func OpenImage(from io.ReaderAt, length int64) (*ImageReader, error) {
	line := make([]byte, min(length, 64))
	if err := readAt(from, line, 0); err != nil {
		return nil, err
	}
	format, lineLength, headLength, err := parseFirstLine(line)
	if err != nil {
		return nil, err
	}
	if length < int64(lineLength+headLength+tailBytes) {
		return nil, fmt.Errorf("the manifest has no end mark: it was cut short")
	}
	end := make([]byte, tailBytes)
	if err := readAt(from, end, length-int64(tailBytes)); err != nil {
		return nil, err
	}
	t, err := parseTail(end, length)
	if err != nil {
		return nil, err
	}
	r := &ImageReader{from: from, format: format}
	indexAt := length - int64(tailBytes) - t.indexLength
	index := &imagepb.Index{}
	if err := r.part(index, indexAt, t.indexLength, t.indexDigest); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	if index.HeadLength != uint64(lineLength+headLength) {
		return nil, fmt.Errorf("index: the head should have %d bytes", index.HeadLength)
	}
	at := int64(index.HeadLength)
	if at > indexAt {
		return nil, fmt.Errorf("index: it begins at %d, within the head of %d bytes", indexAt, at)
	}
	for _, ref := range index.Blocks {
		if ref.Length == 0 || ref.Length > uint64(indexAt-at) || ref.Files == 0 {
			return nil, fmt.Errorf("index: a block cannot have %d bytes and %d files", ref.Length, ref.Files)
		}
		r.starts = append(r.starts, at)
		at += int64(ref.Length)
		r.files += int(ref.Files)
	}
	if at != indexAt {
		return nil, fmt.Errorf("index: the blocks end at %d and not where the index begins, at %d", at, indexAt)
	}
	r.refs = index.Blocks
	return r, r.readHead(lineLength, int(index.HeadLength), storage.Digest(index.HeadDigest))
}

func (r *ImageReader) readHead(lineLength, length int, digest storage.Digest) error {
	head := make([]byte, length)
	if err := readAt(r.from, head, 0); err != nil {
		return err
	}
	if got := storage.DigestOf(head); got != digest {
		return fmt.Errorf("the head's digest is %s and should be %s", got, digest)
	}
	h := &r.header
	if err := json.Unmarshal(head[lineLength:], h); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if h.Format != r.format {
		return fmt.Errorf("head: format %d in a manifest of format %d", h.Format, r.format)
	}
	if err := h.checkReferences(); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if err := h.ID.Validate(); err != nil {
		return err
	}
	if err := h.Table.Validate(); err != nil {
		return err
	}
	return h.Cluster.Validate()
}

// Header gives the head.
func (r *ImageReader) Header() Header { return r.header }

// Files yields every file in the order of their keys. It yields one error at most,
// as its last element; only a list that ended without one is the whole, in order and
// as the header's totals say.
func (r *ImageReader) Files() iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		c := newOrderCheck(&r.header)
		for files, err := range r.blocks(0) {
			if err != nil {
				yield(File{}, err)
				return
			}
			for i := range files {
				if err := c.next(&files[i]); err != nil {
					yield(File{}, err)
					return
				}
				if !yield(files[i], nil) {
					return
				}
			}
		}
		if err := c.against(r.header.Totals); err != nil {
			yield(File{}, err)
		}
	}
}

// FilesIn yields the files whose keys begin with prefix, such as one region's, and
// reads no other blocks than those that may hold some. Of the rest nothing is
// checked.
func (r *ImageReader) FilesIn(prefix string) iter.Seq2[File, error] {
	// The last block that begins before the prefix may hold its first files.
	first := sort.Search(len(r.refs), func(i int) bool { return r.refs[i].First >= prefix })
	return func(yield func(File, error) bool) {
		c := newOrderCheck(&r.header)
		for files, err := range r.blocks(max(0, first-1)) {
			if err != nil {
				yield(File{}, err)
				return
			}
			key, shared := "", 0
			for i := range files {
				if err := c.next(&files[i]); err != nil {
					yield(File{}, err)
					return
				}
				// Within a group the keys differ in the name alone, at the end.
				if i == 0 || !sameGroup(&files[i-1], &files[i]) || len(prefix) > shared {
					key = string(files[i].Key())
					shared = len(key) - len(files[i].Name)
				}
				switch {
				case strings.HasPrefix(key, prefix):
					if !yield(files[i], nil) {
						return
					}
				case key > prefix:
					return
				}
			}
		}
	}
}

// blocks yields the files of one block after the other, unchecked.
func (r *ImageReader) blocks(from int) iter.Seq2[[]File, error] {
	return func(yield func([]File, error) bool) {
		for i := from; i < len(r.refs); i++ {
			files, err := r.block(nil, i)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(files, nil) {
				return
			}
		}
	}
}

// block appends the files of a block.
func (r *ImageReader) block(to []File, i int) ([]File, error) {
	ref := r.refs[i]
	pb := &imagepb.Block{}
	err := r.part(pb, r.starts[i], int64(ref.Length), storage.Digest(ref.Digest))
	if err == nil && len(pb.Sizes) != int(ref.Files) {
		err = fmt.Errorf("it has %d files, and not %d", len(pb.Sizes), ref.Files)
	}
	all := to
	if err == nil {
		all, err = appendFiles(to, pb)
	}
	if err == nil && string(all[len(to)].Key()) != ref.First {
		err = fmt.Errorf("it begins with %s, and not with %s", all[len(to)].Key(), ref.First)
	}
	if err != nil {
		err = fmt.Errorf("block %d: %w", i, err)
		if r.path != "" {
			err = imageError(r.path, err)
		}
		return nil, err
	}
	return all, nil
}

// part reads, checks and unpacks one frame.
func (r *ImageReader) part(m proto.Message, at, length int64, digest storage.Digest) error {
	if length > maxPartBytes {
		return fmt.Errorf("it cannot have %d bytes", length)
	}
	frame := make([]byte, length)
	if err := readAt(r.from, frame, at); err != nil {
		return err
	}
	if got := storage.DigestOf(frame); got != digest {
		return fmt.Errorf("its digest is %s and should be %s", got, digest)
	}
	raw, err := unpacker.DecodeAll(frame, nil)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, m)
}

// aHexName stands for the names of a group, most of which are of its form.
const aHexName = "00000000000000000000000000000000"

func readAt(from io.ReaderAt, b []byte, at int64) error {
	n, err := from.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// appendFiles turns the columns of a block into files. What it gives is as consistent
// as the block's own counts, and every name is good; the order is not checked yet.
func appendFiles(to []File, pb *imagepb.Block) ([]File, error) {
	n, groups := len(pb.Sizes), len(pb.GroupFiles)
	if n == 0 || len(pb.Digests) != n || len(pb.Cells) != n || len(pb.Names)%16 != 0 || len(pb.Names)/16+len(pb.OtherNames) != n {
		return nil, fmt.Errorf("its columns are of different lengths")
	}
	if len(pb.FileLocation) != 0 && len(pb.FileLocation) != n {
		return nil, fmt.Errorf("its column of locations has %d entries for %d files", len(pb.FileLocation), n)
	}
	if len(pb.GroupTable) != groups || len(pb.GroupFamily) != groups || len(pb.GroupRegion) != groups || len(pb.Regions)%16 != 0 {
		return nil, fmt.Errorf("its group columns are of different lengths")
	}
	tables := make([]hbackup.TableName, len(pb.Tables))
	for i, s := range pb.Tables {
		t, err := hbackup.ParseTableName(s)
		if err != nil {
			return nil, err
		}
		tables[i] = t
	}
	if slices.Contains(pb.Locations, "") {
		return nil, fmt.Errorf("it names a location without an id")
	}
	regions := hex.EncodeToString(pb.Regions)
	names := hex.EncodeToString(pb.Names)
	other := pb.OtherNames
	good := map[[2]int]bool{}
	all := slices.Grow(to, n)[:len(to)+n]
	files := all[len(to):]
	next := 0
	for g, count := range pb.GroupFiles {
		t, fam, reg := int(pb.GroupTable[g]), int(pb.GroupFamily[g]), int(pb.GroupRegion[g])
		if t >= len(tables) || fam >= len(pb.Families) || reg >= len(pb.Regions)/16 || count == 0 || int(count) > n-next {
			return nil, fmt.Errorf("its group %d names what is not there", g)
		}
		group := File{Table: tables[t], Family: hbackup.Family(pb.Families[fam]), Region: hbackup.EncodedRegion(regions[32*reg : 32*reg+32])}
		group.Name = aHexName
		// A region made of 16 bytes is good, so table and family are looked at once.
		if pair := [2]int{t, fam}; !good[pair] {
			if err := group.validate(); err != nil {
				return nil, err
			}
			good[pair] = true
		}
		for range count {
			f := &files[next]
			*f = group
			switch {
			case len(other) > 0 && int(other[0].File) == next:
				f.Name, other = other[0].Name, other[1:]
				if err := f.validate(); err != nil {
					return nil, err
				}
			case len(names) > 0:
				f.Name, names = names[:32], names[32:]
			default:
				return nil, fmt.Errorf("its file %d has no name", next)
			}
			if pb.Sizes[next] > math.MaxInt64 || pb.Cells[next] > math.MaxInt64 {
				return nil, fmt.Errorf("a number is too large")
			}
			f.Size, f.Digest, f.Cells = int64(pb.Sizes[next]), storage.Digest(pb.Digests[next]), int64(pb.Cells[next])-1
			if len(pb.FileLocation) > 0 {
				number := int(pb.FileLocation[next])
				if number > len(pb.Locations) {
					return nil, fmt.Errorf("its file %d lies in a location that it does not name", next)
				}
				if number > 0 {
					f.Location = pb.Locations[number-1]
				}
			}
			next++
		}
	}
	if next != n || len(other) > 0 || len(names) > 0 {
		return nil, fmt.Errorf("its groups count %d of %d files", next, n)
	}
	return all, nil
}
