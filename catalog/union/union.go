// Package union keeps on this machine which files the committed images of a table
// name: the union of their lists, each file once, with its size and digest and the
// images that name it. It is a cache: a union says of which images it is, the
// listing of the location says which there are, and one that is missing, damaged or
// of other images is brought up to date from the manifests. It is for statistics
// and for planning; nothing is restored by it.
//
// A union is one file that is never changed. It is made anew by a merge of the old
// one with the lists of the images that came, in memory that does not grow with
// their number, and takes the old one's place at once: who reads the old one goes
// on with it, and nobody waits for anybody. Each block has its digest, which is
// checked when the block is read.
package union

import (
	"io"
	"iter"
	"os"
	"slices"
	"sort"
	"strings"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// Entry is a file and the images that name it.
type Entry struct {
	catalog.File
	spans []span
}

// span is a range of images by their numbers, both ends included.
type span struct{ from, to uint32 }

// Union is an open union. Its methods may be called from many goroutines at once.
type Union struct {
	file *os.File
	head head
}

// Totals count the files of a union that lie in its own location.
type Totals struct {
	Files int   `json:"files"` // each once
	Bytes int64 `json:"bytes"`
	// SharedFiles and SharedBytes are named by two images or more.
	SharedFiles int   `json:"shared_files"`
	SharedBytes int64 `json:"shared_bytes"`
}

// Table gives the table whose images these are.
func (u *Union) Table() hbackup.TableName { return u.head.Table }

// Totals gives the sums over all files.
func (u *Union) Totals() Totals { return u.head.Totals }

// Images gives the images of which this is the union, the oldest first.
func (u *Union) Images() []hbackup.ImageID {
	ids := make([]hbackup.ImageID, len(u.head.Images))
	for i, im := range u.head.Images {
		ids[i] = im.ID
	}
	return ids
}

// ImagesOf gives the images that name a file of this union, the oldest first.
func (u *Union) ImagesOf(e Entry) []hbackup.ImageID {
	var ids []hbackup.ImageID
	for _, s := range e.spans {
		for i := s.from; i <= s.to; i++ {
			ids = append(ids, u.head.Images[i].ID)
		}
	}
	return ids
}

// Entries yields every file in the order of the keys. Images that disagree about a
// file give an entry for each size and digest. An error is the last element and
// means that the union is damaged.
func (u *Union) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for block, err := range u.blocks(0) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range block {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Named yields, of files that are asked for in the order of catalog.CompareFiles,
// those that an image names. Only the fields that make the key count in a
// question. Blocks that can hold no answer are not read.
func (u *Union) Named(files iter.Seq[catalog.File]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var block []Entry
		at := -1 // number of the block
		for f := range files {
			// The answers begin in the last block that begins before the file.
			key := f.Key()
			n := max(0, sort.Search(len(u.head.Blocks), func(i int) bool { return u.head.Blocks[i].First >= key })-1)
			for n = max(n, at); n < len(u.head.Blocks) && (n <= at || u.head.Blocks[n].First <= key); n++ {
				if n > at {
					var err error
					if block, err = u.block(n); err != nil {
						yield(Entry{}, err)
						return
					}
					at = n
				}
				i, _ := slices.BinarySearchFunc(block, f, func(e Entry, f catalog.File) int { return catalog.CompareFiles(e.File, f) })
				for ; i < len(block) && catalog.CompareFiles(block[i].File, f) == 0; i++ {
					if !yield(block[i], nil) {
						return
					}
				}
				if i < len(block) {
					break // the rest of this block is behind the file
				}
			}
		}
	}
}

// SharedBy gives how much of an image's files in this location other images of the
// union name, too.
func (u *Union) SharedBy(id hbackup.ImageID) (files int, bytes int64, err error) {
	i, ok := slices.BinarySearchFunc(u.head.Images, id, func(im image, id hbackup.ImageID) int { return strings.Compare(string(im.ID), string(id)) })
	if !ok {
		return 0, 0, hbackup.Errorf("find image", string(id), hbackup.KindNotFound, "it is none of the table's images")
	}
	number := uint32(i)
	for block, err := range u.blocks(0) {
		if err != nil {
			return 0, 0, err
		}
		for i := range block {
			e := &block[i]
			named := slices.ContainsFunc(e.spans, func(s span) bool { return s.from <= number && number <= s.to })
			if named && e.inner() && e.images() > 1 {
				files++
				bytes += e.Size
			}
		}
	}
	return files, bytes, nil
}

func (u *Union) blocks(from int) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		for i := from; i < len(u.head.Blocks); i++ {
			block, err := u.block(i)
			if !yield(block, err) || err != nil {
				return
			}
		}
	}
}

// Close closes the file.
func (u *Union) Close() error {
	if u.file == nil {
		return nil
	}
	return u.file.Close()
}

// of reports whether this is the union of exactly these images.
func (u *Union) of(t hbackup.TableName, refs []catalog.ImageRef) bool {
	return u.head.Table == t && slices.Equal(u.head.Images, imagesOf(refs))
}

// image is one image as a union knows it.
type image struct {
	ID   hbackup.ImageID `json:"image"`
	Size int64           `json:"size"` // of its manifest
}

func imagesOf(refs []catalog.ImageRef) []image {
	images := make([]image, len(refs))
	for i, r := range refs {
		images[i] = image{r.ID, r.Size}
	}
	return images
}

var _ io.Closer = (*Union)(nil)

// inner is what a location itself holds of the entry.
func (e *Entry) inner() bool { return e.Location == "" }

// images counts those that name the entry.
func (e *Entry) images() int {
	n := 0
	for _, s := range e.spans {
		n += int(s.to-s.from) + 1
	}
	return n
}

// keyed is where a block is and with which key it begins.
type keyed struct {
	First  storage.Key    `json:"first"`
	Files  int            `json:"files"`
	At     int64          `json:"at"`
	Length int64          `json:"length"` // of the frame with the files
	Spans  int64          `json:"spans"`  // and of what follows it
	Digest storage.Digest `json:"digest"` // of both
}
