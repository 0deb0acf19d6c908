package file

import (
	"testing"

	"hbackup/storage/storetest"
)

func BenchmarkFile(b *testing.B) { storetest.Benchmark(b, openStore(b, b.TempDir())) }
