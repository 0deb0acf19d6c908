package catalog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// ImageFormat is the version that is written, and the newest that is read.
const ImageFormat = 1

// The encoding of an image manifest (docs/format.md):
//
//	"hbackup image 1\n"
//	uvarint length, JSON header
//	uvarint count, that many strings: uvarint length, bytes   (tables and families)
//	uvarint count of groups, each: table and family (indexes of strings),
//	        region (16 bytes), uvarint count of files, each:
//	        name form (1 byte) and name, uvarint size, digest (8 bytes), uvarint cells+1
//	digest of all that is before (8 bytes), length of the whole (8 bytes), "imageEND"
//
// All integers of fixed size are big-endian. The last 24 bytes make a manifest
// that was cut short, or that lost its middle, unreadable rather than shorter.
const (
	imageMagic = "hbackup image 1\n"
	imageEnd   = "imageEND"
	imageTail  = 8 + 8 + len(imageEnd)
)

// Forms of a file name. Most names are 32 hexadecimal digits, which fit in half.
const (
	nameHex   = 0 // 16 bytes
	nameSeqID = 1 // 16 bytes, uvarint n: <32 hex>_SeqId_<n>_
	namePlain = 2 // uvarint length, bytes
)

// Encode gives the manifest as it is stored. Files are ordered by their keys;
// two files with one key are an error.
func (im *Image) Encode() ([]byte, error) {
	h := im.Header
	h.Format = ImageFormat
	header, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	files := slices.Clone(im.Files)
	slices.SortFunc(files, CompareFiles)
	for i := range files {
		if err := files[i].validate(); err != nil {
			return nil, err
		}
		if i > 0 && CompareFiles(files[i-1], files[i]) == 0 {
			return nil, fmt.Errorf("the file %s is listed twice", files[i].Key())
		}
	}

	var names []string
	index := map[string]uint64{}
	intern := func(s string) uint64 {
		n, ok := index[s]
		if !ok {
			n = uint64(len(names))
			index[s] = n
			names = append(names, s)
		}
		return n
	}
	var groups []byte
	count := 0
	for start := 0; start < len(files); {
		end := start + 1
		for end < len(files) && sameGroup(files[start], files[end]) {
			end++
		}
		f := files[start]
		groups = binary.AppendUvarint(groups, intern(f.Table.Namespace+":"+f.Table.Qualifier))
		groups = binary.AppendUvarint(groups, intern(string(f.Family)))
		region, err := hex.DecodeString(string(f.Region))
		if err != nil {
			return nil, err
		}
		groups = append(groups, region...)
		groups = binary.AppendUvarint(groups, uint64(end-start))
		for _, f := range files[start:end] {
			groups = appendName(groups, f.Name)
			groups = binary.AppendUvarint(groups, uint64(f.Size))
			groups = binary.BigEndian.AppendUint64(groups, uint64(f.Digest))
			groups = binary.AppendUvarint(groups, uint64(f.Cells+1))
		}
		count++
		start = end
	}

	out := make([]byte, 0, len(imageMagic)+len(header)+len(groups)+64*len(names)+64)
	out = append(out, imageMagic...)
	out = binary.AppendUvarint(out, uint64(len(header)))
	out = append(out, header...)
	out = binary.AppendUvarint(out, uint64(len(names)))
	for _, s := range names {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	out = binary.AppendUvarint(out, uint64(count))
	return appendTail(append(out, groups...)), nil
}

func appendTail(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(storage.DigestOf(b)))
	b = binary.BigEndian.AppendUint64(b, uint64(len(b)+8+len(imageEnd)))
	return append(b, imageEnd...)
}

// DecodeImage reads a manifest and checks it whole: its end mark, length and
// digest, every name, and the totals against the files.
func DecodeImage(b []byte) (*Image, error) {
	d, err := openImage(b)
	if err != nil {
		return nil, err
	}
	im := &Image{}
	if im.Header, err = d.header(); err != nil {
		return nil, err
	}
	names, err := d.strings()
	if err != nil {
		return nil, err
	}
	if im.Files, err = d.files(names, im.Totals.Files); err != nil {
		return nil, err
	}
	if len(d.b) != 0 {
		return nil, fmt.Errorf("%d bytes follow the last file", len(d.b))
	}
	return im, im.check()
}

// check compares the header's totals with the files and the files' order.
func (im *Image) check() error {
	var bytes int64
	for i := range im.Files {
		f := &im.Files[i]
		if err := f.validate(); err != nil {
			return err
		}
		if i > 0 && CompareFiles(im.Files[i-1], *f) >= 0 {
			return fmt.Errorf("the file %s is out of order", f.Key())
		}
		if bytes > math.MaxInt64-f.Size {
			return fmt.Errorf("the sizes of the files add up to more than a number can hold")
		}
		bytes += f.Size
	}
	if im.Totals.Files != len(im.Files) || im.Totals.Bytes != bytes {
		return fmt.Errorf("the header counts %d files of %d bytes, the list has %d of %d", im.Totals.Files, im.Totals.Bytes, len(im.Files), bytes)
	}
	return nil
}

func (f *File) validate() error {
	if err := f.Table.Validate(); err != nil {
		return err
	}
	if err := f.Region.Validate(); err != nil {
		return err
	}
	if err := f.Family.Validate(); err != nil {
		return err
	}
	if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\x00") || len(f.Name) > storage.MaxSegmentBytes {
		return fmt.Errorf("%q is no file name", f.Name)
	}
	if f.Size < 0 || f.Cells < -1 {
		return fmt.Errorf("the file %s has size %d and %d cells", f.Name, f.Size, f.Cells)
	}
	return f.Key().Validate()
}

// CompareFiles orders files as their keys are ordered, without building the keys.
// It is the order of Image.Files, so the one for every search in them.
func CompareFiles(a, b File) int {
	return cmp.Or(compareSegment(a.Table.Namespace, b.Table.Namespace), compareSegment(a.Table.Qualifier, b.Table.Qualifier),
		cmp.Compare(a.Region, b.Region), compareSegment(string(a.Family), string(b.Family)), cmp.Compare(a.Name, b.Name))
}

// compareSegment compares path segments that more segments follow: "t/" comes
// behind "t-1/", as '/' is greater than '-'.
func compareSegment(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 || len(a) == len(b) {
		return c
	}
	if len(a) > n {
		return cmp.Compare(a[n], '/')
	}
	return cmp.Compare('/', b[n])
}

func sameGroup(a, b File) bool {
	return a.Table == b.Table && a.Region == b.Region && a.Family == b.Family
}

func appendName(b []byte, name string) []byte {
	if isHex32(name) {
		b = append(b, nameHex)
		return appendHex(b, name)
	}
	if rest, n, ok := cutSeqID(name); ok {
		b = append(b, nameSeqID)
		b = appendHex(b, rest)
		return binary.AppendUvarint(b, n)
	}
	b = append(b, namePlain)
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

func isHex32(s string) bool { return hbackup.EncodedRegion(s).Validate() == nil }

func appendHex(b []byte, s string) []byte {
	raw, _ := hex.DecodeString(s) // the caller has checked the digits
	return append(b, raw...)
}

// cutSeqID splits <32 hex>_SeqId_<n>_ when it is exactly what the form rebuilds.
func cutSeqID(name string) (string, uint64, bool) {
	rest, tail, ok := strings.Cut(name, "_SeqId_")
	digits, ok2 := strings.CutSuffix(tail, "_")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || !ok2 || err != nil || !isHex32(rest) || seqIDName(rest, n) != name {
		return "", 0, false
	}
	return rest, n, true
}

func seqIDName(rest string, n uint64) string {
	return rest + "_SeqId_" + strconv.FormatUint(n, 10) + "_"
}

// DecodeHeader reads only the header, after the same check of end mark, length and digest.
func DecodeHeader(b []byte) (Header, error) {
	d, err := openImage(b)
	if err != nil {
		return Header{}, err
	}
	return d.header()
}

// imageDecoder consumes the checked body of a manifest.
type imageDecoder struct{ b []byte }

func openImage(b []byte) (*imageDecoder, error) {
	if !bytes.HasPrefix(b, []byte("hbackup image ")) {
		return nil, fmt.Errorf("this is not an image manifest")
	}
	if !bytes.HasPrefix(b, []byte(imageMagic)) {
		line, _, _ := bytes.Cut(b[:min(len(b), 64)], []byte("\n"))
		return nil, hbackup.Errorf("", "", hbackup.KindUnsupported, "the manifest has the format %q, this hbackup reads %q", string(line), strings.TrimSpace(imageMagic)).
			WithHint("use a newer hbackup")
	}
	if len(b) < len(imageMagic)+imageTail || string(b[len(b)-len(imageEnd):]) != imageEnd {
		return nil, fmt.Errorf("the manifest has no end mark: it was cut short")
	}
	body := b[:len(b)-imageTail]
	tail := b[len(body):]
	if n := binary.BigEndian.Uint64(tail[8:]); n != uint64(len(b)) {
		return nil, fmt.Errorf("the manifest says it has %d bytes and has %d", n, len(b))
	}
	if want, got := storage.Digest(binary.BigEndian.Uint64(tail)), storage.DigestOf(body); want != got {
		return nil, fmt.Errorf("the manifest's digest is %s and should be %s", got, want)
	}
	return &imageDecoder{b: body[len(imageMagic):]}, nil
}

func (d *imageDecoder) header() (Header, error) {
	var h Header
	raw, err := d.bytes()
	if err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if h.Format != ImageFormat {
		return h, fmt.Errorf("header: format %d under the magic of format %d", h.Format, ImageFormat)
	}
	if err := h.ID.Validate(); err != nil {
		return h, err
	}
	if err := h.Table.Validate(); err != nil {
		return h, err
	}
	return h, h.Cluster.Validate()
}

func (d *imageDecoder) strings() ([]string, error) {
	n, err := d.count(1)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	out := make([]string, n)
	for i := range out {
		raw, err := d.bytes()
		if err != nil {
			return nil, fmt.Errorf("names: %w", err)
		}
		out[i] = string(raw)
	}
	return out, nil
}

// minFileBytes is the least that one file takes: form, empty name's length, size, digest, cells.
const minFileBytes = 1 + 1 + 1 + 8 + 1

func (d *imageDecoder) files(names []string, expect int) ([]File, error) {
	groups, err := d.count(1 + 1 + 16 + 1)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	files := make([]File, 0, min(max(expect, 0), len(d.b)/minFileBytes))
	tables := make(map[uint64]hbackup.TableName)
	for range groups {
		var f File
		ti, err := d.uvarint()
		if err == nil {
			f.Table, err = tableAt(tables, names, ti)
		}
		if err != nil {
			return nil, fmt.Errorf("group: %w", err)
		}
		fi, err := d.uvarint()
		if err != nil || fi >= uint64(len(names)) {
			return nil, fmt.Errorf("group: no such family name")
		}
		f.Family = hbackup.Family(names[fi])
		region, err := d.take(16)
		if err != nil {
			return nil, fmt.Errorf("group: %w", err)
		}
		f.Region = hbackup.EncodedRegion(hex.EncodeToString(region))
		n, err := d.count(minFileBytes)
		if err != nil {
			return nil, fmt.Errorf("group: %w", err)
		}
		for range n {
			if err := d.file(&f); err != nil {
				return nil, fmt.Errorf("file %d: %w", len(files), err)
			}
			files = append(files, f)
		}
	}
	return files, nil
}

func (d *imageDecoder) file(f *File) error {
	var err error
	if f.Name, err = d.name(); err != nil {
		return err
	}
	size, err := d.uvarint()
	if err != nil {
		return err
	}
	digest, err := d.take(8)
	if err != nil {
		return err
	}
	cells, err := d.uvarint()
	if err != nil {
		return err
	}
	if size > math.MaxInt64 || cells > math.MaxInt64 {
		return fmt.Errorf("a number is too large")
	}
	f.Size, f.Digest, f.Cells = int64(size), storage.Digest(binary.BigEndian.Uint64(digest)), int64(cells)-1
	return nil
}

func tableAt(seen map[uint64]hbackup.TableName, names []string, i uint64) (hbackup.TableName, error) {
	if t, ok := seen[i]; ok {
		return t, nil
	}
	if i >= uint64(len(names)) {
		return hbackup.TableName{}, fmt.Errorf("no such table name")
	}
	t, err := hbackup.ParseTableName(names[i])
	if err == nil {
		seen[i] = t
	}
	return t, err
}

func (d *imageDecoder) name() (string, error) {
	form, err := d.take(1)
	if err != nil {
		return "", err
	}
	switch form[0] {
	case nameHex:
		raw, err := d.take(16)
		return hex.EncodeToString(raw), err
	case nameSeqID:
		raw, err := d.take(16)
		if err != nil {
			return "", err
		}
		rest := hex.EncodeToString(raw)
		n, err := d.uvarint()
		return seqIDName(rest, n), err
	case namePlain:
		raw, err := d.bytes()
		return string(raw), err
	}
	return "", fmt.Errorf("unknown name form %d", form[0])
}

func (d *imageDecoder) take(n int) ([]byte, error) {
	if n > len(d.b) {
		return nil, fmt.Errorf("the list ends early")
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out, nil
}

func (d *imageDecoder) uvarint() (uint64, error) {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, fmt.Errorf("a number cannot be read")
	}
	d.b = d.b[n:]
	return v, nil
}

// count reads a count of things that take at least size bytes each, so that a
// forged one cannot make us allocate more than the manifest's own length allows.
func (d *imageDecoder) count(size int) (int, error) {
	v, err := d.uvarint()
	if err != nil {
		return 0, err
	}
	if v > uint64(len(d.b)/size) {
		return 0, fmt.Errorf("a count of %d cannot be right", v)
	}
	return int(v), nil
}

func (d *imageDecoder) bytes() ([]byte, error) {
	n, err := d.count(1)
	if err != nil {
		return nil, err
	}
	return d.take(n)
}
