package readonly

import (
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
)

func TestReadsPassAndWritesDoNot(t *testing.T) {
	inner := mem.New("test")
	if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	s := New(inner)
	if data, _, err := storage.ReadAll(t.Context(), s, "a", 10); err != nil || string(data) != "x" {
		t.Errorf("ReadAll gave %q, %v", data, err)
	}
	_, put := storage.PutBytes(t.Context(), s, "b", []byte("x"), false)
	_, batch := s.DeleteBatch(t.Context(), []storage.Key{"a"})
	for op, err := range map[string]error{"Put": put, "Delete": s.Delete(t.Context(), "a"), "DeleteBatch": batch} {
		if !hbackup.IsKind(err, hbackup.KindReadOnly) {
			t.Errorf("%s gave %v; want read only", op, err)
		}
	}
	if got := inner.Snapshot(); len(got) != 1 || string(got["a"]) != "x" {
		t.Errorf("the store was changed: %q", got)
	}
}
