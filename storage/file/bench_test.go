package file

import (
	"testing"

	"hbackup/storage/storebench"
)

func BenchmarkFile(b *testing.B) { storebench.Run(b, openStore(b, b.TempDir())) }
