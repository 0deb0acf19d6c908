package metered

import (
	"io"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New(mem.New("test")) }, storetest.HeapLimit(-1))
}

func TestCounts(t *testing.T) {
	ctx := t.Context()
	s := New(mem.New("test"))
	for _, key := range []storage.Key{"a", "b", "a"} {
		storage.PutBytes(ctx, s, key, []byte("12345"), true)
	}
	before := s.Counts()
	if before.Put.Calls != 3 || before.Put.Errors != 1 || before.ErrorKinds[hbackup.KindExists] != 1 || before.BytesWritten < 10 {
		t.Errorf("after the puts: %+v", before)
	}
	body, _, err := s.Get(ctx, "a", storage.Range{Offset: 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Counts().OpenReaders; n != 1 {
		t.Errorf("%d readers are open; want 1", n)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	body.Close()
	body.Close()
	s.Stat(ctx, "missing")
	for range s.List(ctx, "", storage.ListOptions{}) {
	}
	s.Delete(ctx, "a")
	s.DeleteBatch(ctx, []storage.Key{"b", "../x", "/y"})
	s.ServerTime(ctx)
	got := s.Counts().Sub(before)
	for _, op := range got.ops() {
		op.op.Time = 0
	}
	if got.Put != (Op{}) || got.Get != (Op{Calls: 1}) || got.Stat != (Op{Calls: 1, Errors: 1}) || got.List != (Op{Calls: 1}) ||
		got.Delete != (Op{Calls: 1}) || got.DeleteBatch != (Op{Calls: 1, Errors: 2}) || got.ServerTime != (Op{Calls: 1}) {
		t.Errorf("the operations are %+v", got)
	}
	if got.BytesRead != 4 || got.BytesWritten != 0 || got.Listed != 2 || got.OpenReaders != 0 {
		t.Errorf("the amounts are %+v", got)
	}
	if len(got.ErrorKinds) != 2 || got.ErrorKinds[hbackup.KindNotFound] != 1 || got.ErrorKinds[hbackup.KindUsage] != 2 {
		t.Errorf("the kinds of errors are %v", got.ErrorKinds)
	}
	if got.Calls() != 6 || got.Errors() != 3 {
		t.Errorf("%d calls and %d errors; want 6 and 3", got.Calls(), got.Errors())
	}
	if line := got.String(); !strings.Contains(line, "delete batch 1") || !strings.Contains(line, "4 bytes read; 3 errors") {
		t.Errorf("the line is %q", line)
	}
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test")) }, nil)
}
