package catalog

import (
	"iter"

	"google.golang.org/protobuf/proto"

	"hbackup/catalog/imagepb"
)

// BlockFiles is how many files a block of a manifest holds.
const BlockFiles = blockFiles

// PackFiles makes a block of files as it stands in manifests, for lists of files
// elsewhere. The frame has zstd's checksum.
func PackFiles(files []File) ([]byte, error) {
	var b blockBuilder
	for i := range files {
		if err := b.add(&files[i]); err != nil {
			return nil, err
		}
	}
	return pack(&b.pb)
}

// UnpackFiles appends the files of a block that PackFiles made. Every name is good;
// the order is as it was.
func UnpackFiles(to []File, frame []byte) ([]File, error) {
	raw, err := unpacker.DecodeAll(frame, nil)
	if err != nil {
		return nil, err
	}
	pb := &imagepb.Block{}
	if err := proto.Unmarshal(raw, pb); err != nil {
		return nil, err
	}
	return appendFiles(to, pb)
}

// Blocks yields the files of one block after the other, which is faster than one by
// one. What Files promises holds here, too.
func (r *ImageReader) Blocks() iter.Seq2[[]File, error] {
	return func(yield func([]File, error) bool) {
		c := newOrderCheck(&r.header)
		for files, err := range r.blocks(0) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range files {
				if err := c.next(&files[i]); err != nil {
					yield(nil, r.failure(err))
					return
				}
			}
			if !yield(files, nil) {
				return
			}
		}
		if err := c.against(r.header.Totals); err != nil {
			yield(nil, r.failure(err))
		}
	}
}

// failure says of which manifest the error is, when that is known.
func (r *ImageReader) failure(err error) error {
	if r.path == "" {
		return err
	}
	return imageError(r.path, err)
}
