package s3

import (
	"sync"

	"hbackup/storage"
)

// nvme is the reflected polynomial of CRC-64/NVME.
const nvme = 0x9a6c9329ac4bc9b5

// combine gives the digest of a followed by b from the digest of each and the
// length of b, so that parts can be summed side by side. A CRC is linear: putting
// n zero bytes behind a multiplies its register by a matrix over GF(2), which is
// the n-th power of the one for a single byte. The start and end masks of the
// register cancel out when both sums are xored.
func combine(a, b storage.Digest, lenB int64) storage.Digest {
	v := uint64(a)
	for n, i := lenB, 0; n > 0; n, i = n>>1, i+1 {
		if n&1 == 1 {
			v = zeroBytes()[i].times(v)
		}
	}
	return storage.Digest(v) ^ b
}

// zeroBytes gives the maps of 1, 2, 4 and so on zero bytes.
var zeroBytes = sync.OnceValue(func() *[63]matrix {
	var all [63]matrix
	all[0] = zeroByte()
	for i := 1; i < len(all); i++ {
		all[i] = all[i-1].squared()
	}
	return &all
})

// matrix is a linear map of the register, one column per bit.
type matrix [64]uint64

func (m *matrix) times(v uint64) uint64 {
	var out uint64
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 == 1 {
			out ^= m[i]
		}
	}
	return out
}

func (m *matrix) squared() matrix {
	var out matrix
	for i := range out {
		out[i] = m.times(m[i])
	}
	return out
}

// zeroByte is the map of one zero byte: eight steps of the shift register.
func zeroByte() matrix {
	var m matrix
	for i := range m {
		v := uint64(1) << i
		for range 8 {
			if v&1 == 1 {
				v = v>>1 ^ nvme
			} else {
				v >>= 1
			}
		}
		m[i] = v
	}
	return m
}
