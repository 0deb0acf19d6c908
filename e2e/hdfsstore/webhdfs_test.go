package hdfsstore

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"hbackup"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// where are the directories whose files the native protocol cannot read.
func where(t *testing.T) map[string]struct {
	at    string // location
	cause error
} {
	t.Helper()
	coded := pathOf(t) + "/coded"
	must(t, raw(t).MkdirAll(t.Context(), coded))
	webhdfs(t, "PUT", "/", "op=ENABLEECPOLICY&ecpolicy=XOR-2-1-1024k")
	webhdfs(t, "PUT", coded, "op=SETECPOLICY&ecpolicy=XOR-2-1-1024k")
	return map[string]struct {
		at    string
		cause error
	}{
		"encrypted":     {cluster.URI() + zone + pathOf(t), client.ErrEncrypted},
		"erasure-coded": {cluster.URI() + coded, client.ErrErasureCoded},
	}
}

// TestOverHTTPOnly: in an encryption zone and in an erasure-coded directory the
// native protocol is refused before anything of the body is taken, with the hint
// that names the other way; over HTTP the store is whole there.
func TestOverHTTPOnly(t *testing.T) {
	for name, place := range where(t) {
		t.Run(name, func(t *testing.T) {
			natively := openAt(t, place.at, hdfs.Config{User: cluster.User()})
			body := strings.NewReader("x")
			_, err := natively.Put(t.Context(), "a", body, storage.PutOptions{Size: 1})
			wantKind(t, err, hbackup.KindUnsupported)
			if !errors.Is(err, place.cause) || !strings.Contains(hbackup.HintOf(err), "webhdfs: [") || body.Len() != 1 {
				t.Errorf("%v; hint %q; %d bytes left", err, hbackup.HintOf(err), body.Len())
			}

			s := openAt(t, place.at, overHTTP())
			want := make([]byte, 5<<20+7) // over some blocks and cells
			rand.NewChaCha8([32]byte{1}).Read(want)
			_, err = storage.PutBytes(t.Context(), s, "d/big", want, true)
			must(t, err)
			put(t, s, "d/empty", "")
			_, err = storage.PutBytes(t.Context(), s, "d/big", []byte("x"), true)
			wantKind(t, err, hbackup.KindExists)
			for _, r := range []storage.Range{{}, {Offset: 1}, {Offset: 1 << 20, Length: 3}, {Offset: 3<<20 - 1, Length: 1<<20 + 2}, {Offset: int64(len(want))}} {
				in, obj, err := s.Get(t.Context(), "d/big", r)
				must(t, err)
				got, err := io.ReadAll(in)
				must(t, errors.Join(err, in.Close()))
				_, length, err := r.Of(obj.Size)
				must(t, err)
				if !bytes.Equal(got, want[r.Offset:r.Offset+length]) {
					t.Errorf("%+v gave %d other bytes", r, len(got))
				}
			}
			if data, _, err := storage.ReadAll(t.Context(), s, "d/empty", 10); err != nil || len(data) > 0 {
				t.Errorf("%q, %v", data, err)
			}
			// The data nodes did it: the native protocol sees what the files are.
			_, _, err = natively.Get(t.Context(), "d/big", storage.Range{})
			if wantKind(t, err, hbackup.KindUnsupported); !errors.Is(err, place.cause) {
				t.Errorf("%v", err)
			}
			failures, err := s.DeleteBatch(t.Context(), []storage.Key{"d/big", "d/empty"})
			if err != nil || len(failures) > 0 {
				t.Errorf("%v, %v", failures, err)
			}
			for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
				t.Errorf("%s is left, %v", obj.Key, err)
			}
		})
	}
}

// TestRulesOverHTTP: what the rules of this package say of the native way holds for
// the other: rights, replication and block size, quotas, no rights.
func TestRulesOverHTTP(t *testing.T) {
	cfg := overHTTP()
	cfg.Replication, cfg.BlockSize = 2, 2<<20
	s := openAt(t, directory(t), cfg)
	put(t, s, "d/a", "1")
	for path, want := range map[string][]string{
		"": {`"permission":"700"`}, "/d": {`"permission":"700"`}, "/.hbackup-tmp": {`"permission":"700"`},
		"/d/a": {`"permission":"600"`, `"replication":2`, `"blockSize":2097152`},
	} {
		got := webhdfs(t, "GET", pathOf(t)+path, "op=GETFILESTATUS")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q: %s; want %s", path, got, w)
			}
		}
	}
	other := overHTTP()
	other.User = "somebody-else"
	denied := openAt(t, directory(t), other)
	_, putErr := storage.PutBytes(t.Context(), denied, "d/b", []byte("x"), true)
	_, _, getErr := denied.Get(t.Context(), "d/a", storage.Range{})
	for _, err := range []error{putErr, getErr, denied.Delete(t.Context(), "d/a")} {
		wantKind(t, err, hbackup.KindDenied)
	}
	full := pathOf(t) + "/full"
	must(t, raw(t).MkdirAll(t.Context(), full))
	webhdfs(t, "PUT", full, "op=SETQUOTA&storagespacequota=1000")
	_, err := storage.PutBytes(t.Context(), openAt(t, cluster.URI()+full, overHTTP()), "a", make([]byte, 600), true)
	wantKind(t, err, hbackup.KindNoSpace)
	// Both ways lead to the same objects.
	data, _, err := storage.ReadAll(t.Context(), openAt(t, directory(t), hdfs.Config{User: cluster.User()}), "d/a", 10)
	if err != nil || string(data) != "1" {
		t.Errorf("%q, %v", data, err)
	}
}
