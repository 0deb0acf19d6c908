// Package crc combines cyclic redundancy checks, so that the parts of a whole can
// be summed side by side, and the sum of a part be had from sums of the whole.
//
// A CRC is linear: putting a zero byte behind a content multiplies its register by
// a matrix over GF(2), and n of them by the n-th power of it. The start and end
// masks of the register cancel out when two sums are xored.
package crc

// Word is the register of a CRC.
type Word interface{ uint32 | uint64 }

// Combiner combines the sums of one polynomial.
type Combiner[W Word] struct {
	zeros [63][]W // the maps of 1, 2, 4 and so on zero bytes, one column per bit
}

// New gives the combiner of a polynomial in its reflected form.
func New[W Word](polynomial W) *Combiner[W] {
	c := &Combiner[W]{}
	width := 0
	for w := ^W(0); w != 0; w >>= 1 {
		width++
	}
	c.zeros[0] = zeroByte(polynomial, width)
	for i := 1; i < len(c.zeros); i++ {
		c.zeros[i] = squared(c.zeros[i-1])
	}
	return c
}

// Combine gives the sum of a content of which a is the sum of the first part, b
// that of the rest, and lenB the length of the rest in bytes. With the sum of the
// whole in place of b it gives the sum of the rest.
func (c *Combiner[W]) Combine(a, b W, lenB int64) W {
	for n, i := lenB, 0; n > 0; n, i = n>>1, i+1 {
		if n&1 == 1 {
			a = times(c.zeros[i], a)
		}
	}
	return a ^ b
}

func times[W Word](m []W, v W) W {
	var out W
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 == 1 {
			out ^= m[i]
		}
	}
	return out
}

func squared[W Word](m []W) []W {
	out := make([]W, len(m))
	for i := range out {
		out[i] = times(m, m[i])
	}
	return out
}

// zeroByte is the map of one zero byte: eight steps of the shift register.
func zeroByte[W Word](polynomial W, width int) []W {
	m := make([]W, width)
	for i := range m {
		v := W(1) << i
		for range 8 {
			if v&1 == 1 {
				v = v>>1 ^ polynomial
			} else {
				v >>= 1
			}
		}
		m[i] = v
	}
	return m
}
