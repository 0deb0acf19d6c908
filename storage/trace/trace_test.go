package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store {
		return New(mem.New("test"), slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}, storetest.HeapLimit(-1), storetest.LargeSize(8<<20))
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test"), slog.New(slog.DiscardHandler)) }, nil)
}

// lines makes a store and gives what was written of each call, without its times.
func lines(t *testing.T, script string) (*Store, func() []string) {
	t.Helper()
	bad, err := faulty.New(mem.New("test"), script)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := New(bad, slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return s, func() []string {
		var all []string
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if ms, ok := m["ms"].(float64); !ok || ms < 0 || m["level"] != "DEBUG" {
				t.Errorf("%s has no duration, or another level", line)
			}
			delete(m, "time")
			delete(m, "level")
			delete(m, "ms")
			if _, ok := m["first_ms"]; ok {
				m["first_ms"] = "some"
			}
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
		out.Reset()
		return all
	}
}

func TestEveryCallIsWrittenDown(t *testing.T) {
	s, written := lines(t, "get#2:half; stat#1:fail=denied; delete#1:fail=throttled; batch#2:fail; put#3:half; list#2:half")
	ctx := t.Context()
	put := func(key storage.Key) { storage.PutBytes(ctx, s, key, []byte("0123456789"), true) }
	get := func(r storage.Range) {
		if body, _, err := s.Get(ctx, "a", r); err == nil {
			io.Copy(io.Discard, body)
			body.Close()
			body.Close()
		}
	}
	list := func() {
		for range s.List(ctx, "", storage.ListOptions{}) {
		}
	}
	put("a")
	put("a")
	put("b")
	get(storage.Range{Offset: 4})
	get(storage.Range{})
	get(storage.Range{Offset: 11})
	s.Stat(ctx, "a")
	list()
	put("c")
	list()
	for range s.List(ctx, "", storage.ListOptions{After: "a"}) {
		break
	}
	s.Delete(ctx, "a")
	s.DeleteBatch(ctx, []storage.Key{"a", "../b"})
	s.DeleteBatch(ctx, []storage.Key{"a"})
	s.ServerTime(ctx)
	over, cancel := context.WithCancel(ctx)
	cancel()
	s.Stat(over, "a")
	want := []string{
		`{"bytes":10,"if_absent":true,"msg":"put","path":"mem://test/a","size":10}`,
		`{"bytes":10,"error":"exists","if_absent":true,"msg":"put","path":"mem://test/a","size":10}`,
		`{"bytes":5,"error":"unavailable","if_absent":true,"msg":"put","path":"mem://test/b","size":10}`,
		`{"bytes":6,"first_ms":"some","length":0,"msg":"get","offset":4,"path":"mem://test/a","size":10}`,
		`{"bytes":5,"error":"unavailable","first_ms":"some","msg":"get","path":"mem://test/a","size":10}`,
		`{"error":"usage","length":0,"msg":"get","offset":11,"path":"mem://test/a"}`,
		`{"error":"denied","msg":"stat","path":"mem://test/a"}`,
		`{"first_ms":"some","msg":"list","objects":1,"path":"mem://test/"}`,
		`{"bytes":10,"if_absent":true,"msg":"put","path":"mem://test/c","size":10}`,
		`{"error":"unavailable","first_ms":"some","msg":"list","objects":1,"path":"mem://test/"}`,
		`{"after":"a","first_ms":"some","msg":"list","objects":1,"path":"mem://test/"}`,
		`{"error":"throttled","msg":"delete","path":"mem://test/a"}`,
		`{"failed":1,"keys":2,"msg":"delete batch","path":"mem://test/"}`,
		`{"error":"unavailable","failed":0,"keys":1,"msg":"delete batch","path":"mem://test/"}`,
		`{"msg":"server time","path":"mem://test/"}`,
		`{"error":"interrupted","msg":"stat","path":"mem://test/a"}`,
	}
	got := written()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("line %d is missing: %s", i+1, want[i])
		case i >= len(want):
			t.Errorf("line %d is too much: %s", i+1, got[i])
		case got[i] != want[i]:
			t.Errorf("line %d is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
}

// The words of an error may be anybody's: a URL with a signature, for one.
func TestNoWordsOfErrors(t *testing.T) {
	s, written := lines(t, "")
	secret := hbackup.Errorf("read", "https://host/?X-Amz-Signature=secret", hbackup.KindDenied, "token=secret")
	s.Put(t.Context(), "a", io.MultiReader(strings.NewReader("12"), failing{secret}), storage.PutOptions{Size: 10})
	if got := strings.Join(written(), ""); !strings.Contains(got, `"error":"denied"`) || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
