package gcstest

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"hbackup/internal/crc"
)

// inMemory is how many bytes of one content are kept in memory at most.
const inMemory = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blob is a content that grows at its end: in memory while it is small, in a
// file from then on. Its checksums are computed as it grows. When it is complete
// it does not change any more, and can be read by many at once.
type blob struct {
	dir  string
	mem  []byte
	file *os.File // while it grows
	path string
	size int64
	crc  uint32
	md5  hash.Hash // nil of what was joined
}

func (s *Server) newBlob() *blob { return &blob{dir: s.dir, md5: md5.New()} }

// Write appends.
func (b *blob) Write(p []byte) (int, error) {
	if b.path == "" && b.size+int64(len(p)) > inMemory {
		if err := b.spill(); err != nil {
			return 0, err
		}
	}
	if b.file != nil {
		if n, err := b.file.Write(p); err != nil {
			return n, err
		}
	} else {
		b.mem = append(b.mem, p...)
	}
	b.size += int64(len(p))
	b.crc = crc32.Update(b.crc, castagnoli, p)
	b.md5.Write(p)
	return len(p), nil
}

// spill moves the bytes into a file.
func (b *blob) spill() error {
	f, err := os.CreateTemp(b.dir, "blob-")
	if err != nil {
		return err
	}
	b.file, b.path = f, f.Name()
	_, err = f.Write(b.mem)
	b.mem = nil
	return err
}

// seal ends the growing.
func (b *blob) seal() error {
	if b.file == nil {
		return nil
	}
	f := b.file
	b.file = nil
	return f.Close()
}

// drop removes the content. Who has opened it can still read it.
func (b *blob) drop() {
	if b == nil {
		return
	}
	b.seal()
	if b.path != "" {
		os.Remove(b.path)
	}
}

// open gives n bytes from an offset on. With the lock held the content cannot be
// dropped in between.
func (b *blob) open(offset, n int64) (io.ReadCloser, error) {
	if b.path == "" {
		return io.NopCloser(bytes.NewReader(b.mem[offset : offset+n])), nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, n), f}, nil
}

// castagnoliParts combines the sums of parts.
var castagnoliParts = crc.New[uint32](crc32.Castagnoli)

// join puts contents together. The result has no MD5 hash.
func (s *Server) join(parts []*blob) (*blob, error) {
	out := &blob{dir: s.dir}
	for _, p := range parts {
		out.crc = castagnoliParts.Combine(out.crc, p.crc, p.size)
		out.size += p.size
	}
	var err error
	if out.size > inMemory {
		if err = out.spill(); err != nil {
			return nil, err
		}
	}
	for _, p := range parts {
		switch {
		case err != nil:
		case out.file == nil:
			out.mem = append(out.mem, p.mem...)
		case p.path == "":
			_, err = out.file.Write(p.mem)
		default:
			err = p.copyTo(out.file)
		}
	}
	if err == nil {
		err = out.seal()
	}
	if err != nil {
		out.drop()
		return nil, err
	}
	return out, nil
}

// copyTo has the kernel copy the file of a content.
func (b *blob) copyTo(to *os.File) error {
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}

func (b *blob) crc32c() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, b.crc))
}

func (b *blob) md5Hash() string { return base64.StdEncoding.EncodeToString(b.md5.Sum(nil)) }
