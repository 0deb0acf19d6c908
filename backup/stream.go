package backup

import (
	"iter"

	"hbackup/catalog"
	"hbackup/storage"
)

// stream goes along an ascending sequence for somebody who looks for files in the
// same order. It holds one element at a time.
type stream[T any] struct {
	compare func(*T, *need) int
	next    func() (T, error, bool)
	stop    func()
	head    T
	state   streamState
	err     error
}

type streamState int

const (
	streamFresh streamState = iota // nothing was drawn yet
	streamHead                     // head is the next element
	streamEnd
)

func newStream[T any](seq iter.Seq2[T, error], compare func(*T, *need) int) *stream[T] {
	s := &stream[T]{compare: compare}
	s.next, s.stop = iter.Pull2(seq)
	return s
}

// seek gives the element for the file, or nil. Who looks for files out of order
// does not find them.
func (s *stream[T]) seek(n *need) *T {
	for {
		if s.state == streamFresh {
			s.draw()
		}
		if s.state == streamEnd {
			return nil
		}
		switch c := s.compare(&s.head, n); {
		case c == 0:
			return &s.head
		case c > 0:
			return nil
		}
		s.draw()
	}
}

func (s *stream[T]) draw() {
	v, err, ok := s.next()
	if !ok || err != nil {
		s.state, s.err = streamEnd, err
		return
	}
	s.state, s.head = streamHead, v
}

// objectsOf goes along a listing.
func objectsOf(seq iter.Seq2[storage.Object, error]) *stream[storage.Object] {
	return newStream(seq, func(o *storage.Object, n *need) int { return catalog.CompareKey(o.Key, &n.target) })
}

// filesOf goes along the files of an image.
func filesOf(seq iter.Seq2[catalog.File, error]) *stream[catalog.File] {
	return newStream(seq, func(f *catalog.File, n *need) int { return catalog.CompareFile(f, &n.target) })
}
