package hfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"hbackup"
)

// decompress gives the size bytes that a block's payload stands for. Errors are
// of KindUnsupported for codecs that are not known here, else of KindCorrupt.
func decompress(codec Codec, payload []byte, size int) ([]byte, error) {
	switch codec {
	case None:
		if len(payload) != size {
			return nil, codecFault(codec, "%d bytes, not %d", len(payload), size)
		}
		return payload, nil
	case GZ:
		return gunzip(payload, size)
	case Snappy:
		return unframe(codec, payload, size, unsnappy)
	case LZ4:
		return unframe(codec, payload, size, unlz4)
	case ZSTD:
		// Hadoop's own codec writes a bare frame, HBase's puts it into units.
		if bytes.HasPrefix(payload, zstdMagic) {
			dst, err := unzstd(make([]byte, 0, size), payload)
			if err != nil || len(dst) != size {
				return nil, codecFault(codec, "%d bytes, not %d (%v)", len(dst), size, err)
			}
			return dst, nil
		}
		return unframe(codec, payload, size, unzstd)
	}
	return nil, hbackup.Errorf("", "", hbackup.KindUnsupported, "blocks compressed with %s cannot be read here", codec)
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func codecFault(codec Codec, format string, args ...any) error {
	return hbackup.Errorf("", "", hbackup.KindCorrupt, codec.String()+": "+format, args...)
}

func gunzip(payload []byte, size int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, codecFault(GZ, "%v", err)
	}
	dst := make([]byte, size)
	if n, err := io.ReadFull(z, dst); err != nil {
		return nil, codecFault(GZ, "%d bytes, not %d (%v)", n, size, err)
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, codecFault(GZ, "more than %d bytes (%v)", size, err)
	}
	return dst, nil
}

// unframe reads Hadoop's BlockCompressorStream: units of int32 plain length, then
// segments of int32 compressed length and bytes until the unit is complete. A
// unit of length 0 may stand anywhere.
func unframe(codec Codec, b []byte, size int, segment func(dst, src []byte) ([]byte, error)) ([]byte, error) {
	out, done := make([]byte, size), 0
	for len(b) > 0 {
		plain, rest, ok := length(b)
		if !ok || plain > size-done {
			return nil, codecFault(codec, "a unit is longer than the block")
		}
		b = rest
		for end := done + plain; done < end; {
			n, rest, ok := length(b)
			if !ok || n > len(rest) {
				return nil, codecFault(codec, "a segment is cut off")
			}
			got, err := segment(out[done:done:end], rest[:n])
			if err != nil {
				return nil, codecFault(codec, "%v", err)
			}
			if len(got) == 0 || len(got) > end-done {
				return nil, codecFault(codec, "a segment of %d bytes", len(got))
			}
			done += len(got)
			b = rest[n:]
		}
	}
	if done != size {
		return nil, codecFault(codec, "%d bytes, not %d", done, size)
	}
	return out, nil
}

// length takes an int32 that is not negative.
func length(b []byte) (n int, rest []byte, ok bool) {
	if len(b) < 4 {
		return 0, nil, false
	}
	v := int32(binary.BigEndian.Uint32(b))
	return int(v), b[4:], v >= 0
}

// The functions that follow append what a segment stands for to dst, within its
// capacity.

func unsnappy(dst, src []byte) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return dst, err
	}
	if n > cap(dst)-len(dst) {
		return dst, io.ErrShortBuffer
	}
	out, err := s2.Decode(dst[len(dst):len(dst)+n], src)
	if err != nil {
		return dst, err
	}
	return dst[:len(dst)+len(out)], nil
}

func unlz4(dst, src []byte) ([]byte, error) { return lz4Block(dst, src) }

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

func unzstd(dst, src []byte) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	return d.DecodeAll(src, dst)
}
