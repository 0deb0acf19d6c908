package union

import (
	"cmp"
	"iter"
	"slices"

	"hbackup/catalog"
)

// source is a list of entries in their order, block by block.
type source struct {
	next  func() ([]Entry, error, bool)
	stop  func()
	block []Entry
	renumber
}

// newSource takes blocks of entries whose images have other numbers in the result.
func newSource(blocks iter.Seq2[[]Entry, error], r renumber) *source {
	next, stop := iter.Pull2(blocks)
	return &source{next: next, stop: stop, renumber: r}
}

// imageSource is the list of an image, which has the number n.
func imageSource(r *catalog.ImageReader, n int) *source {
	spans := []span{{uint32(n), uint32(n)}}
	return newSource(func(yield func([]Entry, error) bool) {
		var block []Entry
		for files, err := range r.Blocks() {
			if err != nil {
				yield(nil, err)
				return
			}
			block = slices.Grow(block[:0], len(files))
			for _, f := range files {
				block = append(block, Entry{f, spans})
			}
			if !yield(block, nil) {
				return
			}
		}
	}, nil)
}

// fill makes sure that there is an entry, and reports whether there is.
func (s *source) fill() (bool, error) {
	for len(s.block) == 0 {
		block, err, ok := s.next()
		if err != nil || !ok {
			return false, err
		}
		s.block = block
	}
	return true, nil
}

// compare orders entries: those that are equal are one.
func compare(a, b *catalog.File) int {
	if c := catalog.CompareFiles(*a, *b); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Location, b.Location), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Digest, b.Digest))
}

// merge gives the entries of all sources in their order, those that are the same
// file put together, to out. An entry that no image names any more is left out. The
// sources are ended.
func merge(sources []*source, out func(*Entry) error) error {
	defer func() {
		for _, s := range sources {
			s.stop()
		}
	}()
	h := make(heap, 0, len(sources))
	for _, s := range sources {
		ok, err := s.fill()
		if err != nil {
			return err
		}
		if ok {
			h = append(h, s)
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	var e Entry
	for len(h) > 0 {
		e.File = h[0].block[0].File
		e.spans = e.spans[:0]
		for len(h) > 0 && compare(&h[0].block[0].File, &e.File) == 0 {
			s := h[0]
			if e.Cells < 0 {
				e.Cells = s.block[0].Cells
			}
			e.spans = s.renumber.appendTo(e.spans, s.block[0].spans)
			s.block = s.block[1:]
			ok, err := s.fill()
			if err != nil {
				return err
			}
			if !ok {
				h[0] = h[len(h)-1]
				h = h[:len(h)-1]
			}
			if len(h) > 1 {
				h.down(0)
			}
		}
		if e.spans = joined(e.spans); len(e.spans) == 0 {
			continue
		}
		if err := out(&e); err != nil {
			return err
		}
	}
	return nil
}

// heap has the source with the first entry at its top.
type heap []*source

func (h heap) down(i int) {
	for {
		first, left := i, 2*i+1
		for c := left; c < min(left+2, len(h)); c++ {
			if compare(&h[c].block[0].File, &h[first].block[0].File) < 0 {
				first = c
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

// joined brings spans into order and joins those that touch or overlap.
func joined(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	byStart := func(a, b span) int { return cmp.Compare(a.from, b.from) }
	if !slices.IsSortedFunc(spans, byStart) {
		slices.SortFunc(spans, byStart)
	}
	out := spans[:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.from <= last.to+1 {
			last.to = max(last.to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// renumber gives the number that an image has in the result, -1 for one that is
// gone; nil changes nothing. Numbers that are left keep their order.
type renumber []int32

// renumbering compares two lists of images in their order.
func renumbering(from, to []image) renumber {
	r := make(renumber, len(from))
	same := true
	j := 0
	for i, im := range from {
		for j < len(to) && to[j].ID < im.ID {
			j++
		}
		r[i] = -1
		if j < len(to) && to[j] == im {
			r[i] = int32(j)
		}
		same = same && r[i] == int32(i)
	}
	if same {
		return nil
	}
	return r
}

// appendTo appends spans with their new numbers.
func (r renumber) appendTo(to, spans []span) []span {
	if r == nil {
		return append(to, spans...)
	}
	for _, s := range spans {
		for i := s.from; i <= s.to; i++ {
			n := r[i]
			if n < 0 {
				continue
			}
			if k := len(to); k > 0 && to[k-1].to+1 == uint32(n) {
				to[k-1].to++
				continue
			}
			to = append(to, span{uint32(n), uint32(n)})
		}
	}
	return to
}
