package s3

import "sync/atomic"

// shared is a lent buffer with several borrowers, the last of whom gives it back.
type shared struct {
	buf       []byte
	of        *buffers
	borrowers atomic.Int32
}

func (s *shared) borrow() { s.borrowers.Add(1) }

func (s *shared) giveBack() {
	if s.borrowers.Add(-1) == 0 {
		s.of.put(s.buf)
	}
}
