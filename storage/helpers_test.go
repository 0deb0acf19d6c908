package storage_test

import (
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
)

func TestReadAll(t *testing.T) {
	inner := mem.New("test")
	if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("0123456789"), true); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("x"), true); !hbackup.IsKind(err, hbackup.KindExists) {
		t.Errorf("PutBytes over an object gave %v", err)
	}
	s, err := faulty.New(inner, "get#3:cut; get#4:flip; get#5:half; get#6:fail")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []hbackup.Kind{"", hbackup.KindCorrupt, hbackup.KindIncomplete, hbackup.KindCorrupt, hbackup.KindUnavailable, hbackup.KindUnavailable, ""} {
		limit := int64(10)
		if i == 1 {
			limit = 9
		}
		data, obj, err := storage.ReadAll(t.Context(), s, "a", limit)
		if want != "" {
			if !hbackup.IsKind(err, want) || data != nil {
				t.Errorf("ReadAll %d gave %q, %v; want %s", i+1, data, err, want)
			}
			continue
		}
		if err != nil || string(data) != "0123456789" || !obj.HasDigest || obj.Digest != storage.DigestOf(data) {
			t.Errorf("ReadAll %d gave %q, %+v, %v", i+1, data, obj, err)
		}
	}
	if _, _, err := storage.ReadAll(t.Context(), s, "missing", 10); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("ReadAll of nothing gave %v", err)
	}
}

func TestExists(t *testing.T) {
	inner := mem.New("test")
	if _, err := storage.PutBytes(t.Context(), inner, "a", nil, true); err != nil {
		t.Fatal(err)
	}
	s, err := faulty.New(inner, "stat#3:fail")
	if err != nil {
		t.Fatal(err)
	}
	if there, err := storage.Exists(t.Context(), s, "a"); !there || err != nil {
		t.Errorf("a: %v, %v", there, err)
	}
	if there, err := storage.Exists(t.Context(), s, "b"); there || err != nil {
		t.Errorf("b: %v, %v", there, err)
	}
	if there, err := storage.Exists(t.Context(), s, "a"); there || !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("a with a fault: %v, %v", there, err)
	}
}
