package crc

import (
	"hash/crc32"
	"hash/crc64"
	"testing"

	"github.com/minio/crc64nvme"
	"pgregory.net/rapid"
)

var (
	castagnoli = New[uint32](crc32.Castagnoli)
	nvme       = New[uint64](0x9a6c9329ac4bc9b5)
	ecma       = New[uint64](crc64.ECMA)
)

// TestCombine cuts contents in two at any place.
func TestCombine(t *testing.T) {
	table32, table64 := crc32.MakeTable(crc32.Castagnoli), crc64.MakeTable(crc64.ECMA)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "b")
		both, n := append(append([]byte{}, a...), b...), int64(len(b))
		a32, b32, all32 := crc32.Checksum(a, table32), crc32.Checksum(b, table32), crc32.Checksum(both, table32)
		if got := castagnoli.Combine(a32, b32, n); got != all32 {
			t.Errorf("CRC32C: got %08x, want %08x", got, all32)
		}
		if got := castagnoli.Combine(a32, all32, n); got != b32 {
			t.Errorf("CRC32C of the rest: got %08x, want %08x", got, b32)
		}
		if got, want := nvme.Combine(crc64nvme.Checksum(a), crc64nvme.Checksum(b), n), crc64nvme.Checksum(both); got != want {
			t.Errorf("CRC64NVME: got %016x, want %016x", got, want)
		}
		if got, want := ecma.Combine(crc64.Checksum(a, table64), crc64.Checksum(b, table64), n), crc64.Checksum(both, table64); got != want {
			t.Errorf("CRC64-ECMA: got %016x, want %016x", got, want)
		}
	})
}

// TestCombineLong has lengths that no test can hold: of zero bytes they add up.
func TestCombineLong(t *testing.T) {
	const a, b = 5 << 40, 77<<30 + 12345
	start := crc32.Checksum([]byte("start"), crc32.MakeTable(crc32.Castagnoli))
	zeros := func(n int64) uint32 { return castagnoli.Combine(start, 0, n) }
	if got, want := castagnoli.Combine(zeros(a), 0, b), zeros(a+b); got != want {
		t.Errorf("got %08x, want %08x", got, want)
	}
}
