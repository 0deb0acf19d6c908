package union

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// A union is a first line, blocks, the head as JSON, and an end: where the head
// begins, its length and its digest, 8 bytes each, big-endian. A block is a frame of
// files as in manifests, and for each file the images that name it: how many spans,
// then for each how far it begins behind the last one and how much longer than one it is,
// as varints.
const (
	firstLine = "hbackup union 1\n"
	endBytes  = 24
	maxHead   = 1 << 30
	maxBlock  = 256 << 20
)

// head says what the union is of and where its blocks are.
type head struct {
	Table  hbackup.TableName `json:"table"`
	Images []image           `json:"images"` // ascending; spans count them from 0
	Totals Totals            `json:"totals"`
	// Foreign are the other tables under whose names some of the files lie, as
	// those of a clone do.
	Foreign []hbackup.TableName `json:"foreign,omitempty"`
	Blocks  []keyed             `json:"blocks"`
}

// open opens a union and checks its head.
func open(path string) (*Union, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	u := &Union{file: f}
	if err := u.readHead(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return u, nil
}

func (u *Union) readHead() error {
	st, err := u.file.Stat()
	if err != nil {
		return err
	}
	start, end := make([]byte, len(firstLine)), make([]byte, endBytes)
	if st.Size() < int64(len(start)+len(end)) {
		return fmt.Errorf("it was cut short")
	}
	if _, err := u.file.ReadAt(start, 0); err != nil {
		return err
	}
	if _, err := u.file.ReadAt(end, st.Size()-endBytes); err != nil {
		return err
	}
	at, length := int64(binary.BigEndian.Uint64(end)), int64(binary.BigEndian.Uint64(end[8:]))
	if !bytes.Equal(start, []byte(firstLine)) || length < 0 || length > maxHead || at != st.Size()-endBytes-length {
		return fmt.Errorf("it is no union of this format, or was cut short")
	}
	text := make([]byte, length)
	if _, err := u.file.ReadAt(text, at); err != nil {
		return err
	}
	if storage.DigestOf(text) != storage.Digest(binary.BigEndian.Uint64(end[16:])) {
		return fmt.Errorf("the digest of its head is wrong")
	}
	return json.Unmarshal(text, &u.head)
}

// block reads and checks one block.
func (u *Union) block(n int) ([]Entry, error) {
	k := u.head.Blocks[n]
	bad := func(why any) error {
		return hbackup.Errorf("read union", u.file.Name(), hbackup.KindCorrupt, "block %d: %v", n, why)
	}
	if k.Length < 0 || k.Spans < 0 || k.Length > maxBlock || k.Spans > maxBlock {
		return nil, bad("it cannot be that long")
	}
	b := make([]byte, k.Length+k.Spans)
	if _, err := u.file.ReadAt(b, k.At); err != nil {
		return nil, bad(err)
	}
	if storage.DigestOf(b) != k.Digest {
		return nil, bad("its digest is wrong")
	}
	files, err := catalog.UnpackFiles(nil, b[:k.Length])
	if err != nil {
		return nil, bad(err)
	}
	entries := make([]Entry, len(files))
	rest := b[k.Length:]
	var room []span
	for i, f := range files {
		count, n := binary.Uvarint(rest)
		if n <= 0 || count > uint64(len(rest)) {
			return nil, bad("its images cannot be read")
		}
		rest = rest[n:]
		if len(room)+int(count) > cap(room) {
			room = make([]span, 0, max(len(files), int(count)))
		}
		begin, last := len(room), uint64(0)
		for range count {
			skip, n := binary.Uvarint(rest)
			more, m := binary.Uvarint(rest[max(n, 0):])
			if limit := uint64(len(u.head.Images)); n <= 0 || m <= 0 || skip >= limit || more >= limit || last+skip+more >= limit {
				return nil, bad("its images cannot be read")
			}
			rest = rest[n+m:]
			room = append(room, span{uint32(last + skip), uint32(last + skip + more)})
			last += skip + more
		}
		entries[i] = Entry{f, room[begin:len(room):len(room)]}
	}
	return entries, nil
}
