package mem

import (
	"testing"

	"hbackup/storage/storebench"
)

func BenchmarkMem(b *testing.B) { storebench.Run(b, New("bench")) }
