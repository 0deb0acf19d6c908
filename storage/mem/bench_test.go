package mem

import (
	"testing"

	"hbackup/storage/storetest"
)

func BenchmarkMem(b *testing.B) { storetest.Benchmark(b, New("bench")) }
