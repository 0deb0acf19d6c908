package s3

import (
	"sync"

	"hbackup/internal/crc"
	"hbackup/storage"
)

// nvme combines CRC-64/NVME sums; the number is the reflected polynomial.
var nvme = sync.OnceValue(func() *crc.Combiner[uint64] { return crc.New[uint64](0x9a6c9329ac4bc9b5) })

// combine gives the digest of a followed by b from the digest of each and the
// length of b, so that parts can be summed side by side.
func combine(a, b storage.Digest, lenB int64) storage.Digest {
	return storage.Digest(nvme().Combine(uint64(a), uint64(b), lenB))
}
