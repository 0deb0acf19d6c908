package mem

import (
	"testing"

	"hbackup/storage"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New("test") }, storetest.HeapLimit(-1))
}
