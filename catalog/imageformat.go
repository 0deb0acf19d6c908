package catalog

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hbackup"
	"hbackup/storage"
)

// ImageFormat is the version of an image of which all files lie in its own
// location. FormatWithReferences is that of all others: a reader that does not know
// that files can lie elsewhere must not read it. They differ in nothing else.
const (
	ImageFormat          = 2
	FormatWithReferences = 3
)

// The manifest of an image (docs/format.md):
//
//	head    one line: "hbackup image 2, head of N bytes", then N bytes of JSON, for people to read
//	blocks  the files: each a zstd frame with an imagepb.Block
//	index   a zstd frame with an imagepb.Index: length and digest of head and blocks
//	tail    length of the index, its digest, length of the whole (8 bytes each,
//	        big-endian), "imageEND"
//
// The tail vouches for the index and the index for all the rest, so a reader can
// take any part alone and knows that it is whole. A manifest that was cut short has
// no tail and is unreadable, not shorter.
const (
	imageMagic = "hbackup image "
	imageEnd   = "imageEND"
	tailBytes  = 8 + 8 + 8 + len(imageEnd)
)

// Bounds of what a reader believes, so that a forged length cannot make it
// allocate without limit.
const (
	blockFiles   = 4096     // files in a block that is written
	maxHeadBytes = 16 << 20 // JSON
	maxPartBytes = 64 << 20 // a block or the index, unpacked
)

// tail is the fixed end of a manifest.
type tail struct {
	indexLength int64
	indexDigest storage.Digest
	length      int64
}

func (t tail) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.indexLength))
	b = binary.BigEndian.AppendUint64(b, uint64(t.indexDigest))
	b = binary.BigEndian.AppendUint64(b, uint64(t.length))
	return append(b, imageEnd...)
}

func parseTail(b []byte, length int64) (tail, error) {
	if string(b[24:]) != imageEnd {
		return tail{}, fmt.Errorf("the manifest has no end mark: it was cut short")
	}
	t := tail{int64(binary.BigEndian.Uint64(b)), storage.Digest(binary.BigEndian.Uint64(b[8:])), int64(binary.BigEndian.Uint64(b[16:]))}
	if t.length != length {
		return t, fmt.Errorf("the manifest says it has %d bytes and has %d", t.length, length)
	}
	if t.indexLength <= 0 || t.indexLength > length-int64(tailBytes) {
		return t, fmt.Errorf("the manifest's index cannot have %d bytes", t.indexLength)
	}
	return t, nil
}

// firstLine is the first line of a manifest with a head of n bytes.
func firstLine(format, n int) string {
	return fmt.Sprintf("%s%d, head of %d bytes\n", imageMagic, format, n)
}

// parseFirstLine gives the format, the length of the first line and of the JSON
// behind it.
func parseFirstLine(b []byte) (format, line, head int, err error) {
	s, _, found := strings.Cut(string(b[:min(len(b), 64)]), "\n")
	if !strings.HasPrefix(s, imageMagic) {
		return 0, 0, 0, fmt.Errorf("this is not an image manifest")
	}
	version, rest, ok := strings.Cut(strings.TrimPrefix(s, imageMagic), ", head of ")
	format, err = strconv.Atoi(version)
	if err != nil || format < ImageFormat || format > FormatWithReferences {
		return 0, 0, 0, hbackup.Errorf("", "", hbackup.KindUnsupported, "the manifest begins with %q, this hbackup reads %q up to %d", s, imageMagic+strconv.Itoa(ImageFormat), FormatWithReferences).
			WithHint("use the hbackup that wrote it, or a newer one")
	}
	head, err = strconv.Atoi(strings.TrimSuffix(rest, " bytes"))
	if !ok || !found || err != nil || head <= 0 || head > maxHeadBytes || firstLine(format, head) != s+"\n" {
		return 0, 0, 0, fmt.Errorf("the manifest's first line cannot be read")
	}
	return format, len(s) + 1, head, nil
}

// The frames carry zstd's own checksum, so that zstd's tools find damage, too.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPartBytes), zstd.WithDecoderConcurrency(0))
)
