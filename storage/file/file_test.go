package file

import (
	"testing"

	"hbackup/storage"
	"hbackup/storage/storetest"
)

func openStore(t testing.TB, path string) *Store {
	t.Helper()
	place, err := storage.ParseLocation("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(place)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return openStore(t, t.TempDir()) }, storetest.NoNesting())
}

// Where the file system cannot make files without a name.
func TestContractNamed(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store {
		s := openStore(t, t.TempDir())
		s.named = true
		return s
	}, storetest.NoNesting())
}
