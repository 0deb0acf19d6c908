package s3

import (
	"context"
	"math/bits"
	"sync"

	"golang.org/x/sync/semaphore"
)

// buffers lends memory for bodies, never more than its budget at a time. What comes
// back is kept for the next one; lent and kept together are at most a part more
// than the budget, so that a small body in between costs no part its buffer.
type buffers struct {
	budget int64
	part   int64               // the usual size of a part
	lent   *semaphore.Weighted // in bytes

	mu   sync.Mutex
	kept map[int64][][]byte // by size
	size int64              // bytes that are lent or kept
}

const smallestBuffer = 16 << 10

func newBuffers(budget, part int64) *buffers {
	return &buffers{budget: budget, part: part, lent: semaphore.NewWeighted(budget), kept: map[int64][][]byte{}}
}

// classOf rounds up, so that buffers fit many objects: to a part, or below half a
// part to a power of two. What is larger than a part is taken as it is.
func (b *buffers) classOf(size int64) int64 {
	switch {
	case size > b.part:
		return size
	case size > b.part/2:
		return b.part
	}
	return int64(1) << bits.Len64(uint64(max(size, smallestBuffer)-1))
}

// get gives a buffer of that length, when so much of the budget is free. One
// that is larger than the whole budget is lent alone.
func (b *buffers) get(ctx context.Context, size int64) ([]byte, error) {
	class := b.classOf(size)
	if err := b.lent.Acquire(ctx, min(class, b.budget)); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if free := b.kept[class]; len(free) > 0 {
		buf := free[len(free)-1]
		b.kept[class] = free[:len(free)-1]
		return buf[:size], nil
	}
	b.makeRoom(class)
	b.size += class
	return make([]byte, size, class), nil
}

// makeRoom forgets kept buffers until another one of that size is within bounds.
func (b *buffers) makeRoom(class int64) {
	for other, free := range b.kept {
		for len(free) > 0 && b.size+class > b.budget+b.part {
			free[len(free)-1] = nil
			free = free[:len(free)-1]
			b.size -= other
		}
		b.kept[other] = free
	}
}

// put takes back what get gave.
func (b *buffers) put(buf []byte) {
	class := int64(cap(buf))
	b.mu.Lock()
	if b.size > b.budget+b.part {
		b.size -= class // a part larger than the budget
	} else {
		b.kept[class] = append(b.kept[class], buf)
	}
	b.mu.Unlock()
	b.lent.Release(min(class, b.budget))
}
