package gcs

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// TestNothingLeaks makes puts and reads fail in many ways and then wants every
// goroutine, every connection and all memory back.
func TestNothingLeaks(t *testing.T) {
	s, direct, p := behind(t, func(c *Config) { c.RetryFor = 10 * time.Millisecond })
	data := bytesFor(3*chunkQuantum + 1)
	if err := putBytes(t, direct, "there", data, false); err != nil {
		t.Fatal(err)
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		switch nth % 5 {
		case 0:
			return refuse(w, r, 503, "backendError")
		case 1:
			return proxy.CutRequest(t, w, r, max(r.ContentLength, 0)/2)
		case 2:
			return p.CutAnswer(w, r, 100_000)
		case 3:
			w.WriteHeader(503) // before the body is read
			return true
		}
		return false
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for j := range 4 {
				size := int64(1000)
				if j%2 == 1 {
					size = int64(len(data))
				}
				key := storage.Key("a/" + strings.Repeat("k", i+1))
				s.Put(ctx, key, io.LimitReader(&slow{cancel: cancel, at: 4 * (i + 1)}, size), storage.PutOptions{Size: size})
				body, _, err := s.Get(ctx, "there", storage.Range{})
				if err == nil {
					io.CopyN(io.Discard, body, 100_000*int64(j))
					body.Close()
				}
			}
		})
	}
	wg.Wait()
	p.Set(nil)
	if !s.memory.TryAcquire(s.c.Memory) {
		t.Error("memory is still lent")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a connection is left", func() bool { return p.Connections() == 0 })
	eventually(t, "a goroutine is left", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for g := range strings.SplitSeq(string(stacks), "\n\n") {
			ours := strings.Contains(g, "hbackup/storage/gcs.") || strings.Contains(g, "cloud.google.com/go/storage.") || strings.Contains(g, "gensupport.")
			if ours && !strings.Contains(g, "TestNothingLeaks") && !strings.Contains(g, "storetest/proxy") && !strings.Contains(g, "testing.tRunner") && !strings.Contains(g, "TestMain") {
				return false
			}
		}
		return true
	})
}

// slow cancels its context after a number of reads.
type slow struct {
	cancel func()
	at     int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.at--; s.at == 0 {
		s.cancel()
	}
	clear(p)
	return len(p), nil
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
