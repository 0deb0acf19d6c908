package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hbackup/storage"
)

func TestCombine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "b")
		whole := storage.DigestOf(append(bytes.Clone(a), b...))
		if got := combine(storage.DigestOf(a), storage.DigestOf(b), int64(len(b))); got != whole {
			t.Fatalf("combine gives %s; want %s", got, whole)
		}
		// The same step the other way round, as parts need it: from the digest
		// before and after a part to that of the part.
		if got := combine(storage.DigestOf(a), whole, int64(len(b))); got != storage.DigestOf(b) {
			t.Fatalf("combine gives %s for the part; want %s", got, storage.DigestOf(b))
		}
	})
}

func TestCombineLarge(t *testing.T) {
	b := bytesFor(40 << 20)
	a := []byte("before")
	whole := storage.AddDigest(storage.DigestOf(a), b)
	if got := combine(storage.DigestOf(a), whole, int64(len(b))); got != storage.DigestOf(b) {
		t.Fatalf("got %s; want %s", got, storage.DigestOf(b))
	}
}

func TestPartSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configured := rapid.Int64Range(minPartSize, 64<<20).Draw(t, "configured")
		size := rapid.Int64Range(1, maxParts*int64(maxPartSize)-maxParts<<20).Draw(t, "size")
		part := partSizeFor(size, configured)
		parts := (size + part - 1) / part
		if part < configured || part > maxPartSize || parts > maxParts {
			t.Fatalf("%d bytes go into %d parts of %d", size, parts, part)
		}
		if size <= configured*maxParts && part != configured {
			t.Fatalf("part size %d; the configured one would do", part)
		}
		if part > configured && (part-1<<20)*maxParts >= size {
			t.Fatalf("part size %d is larger than it must be", part)
		}
	})
}

func TestDigestHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := storage.Digest(rapid.Uint64().Draw(t, "digest"))
		s := encodeDigest(d)
		if got, ok := decodeDigest(&s); !ok || got != d {
			t.Fatalf("%s came back as %s, %v", d, got, ok)
		}
	})
	composite := encodeDigest(1) + "-3"
	for _, bad := range []*string{nil, new(string), &composite} {
		if d, ok := decodeDigest(bad); ok {
			t.Errorf("%v is taken for the digest %s", bad, d)
		}
	}
}

func TestRangeHeader(t *testing.T) {
	for want, r := range map[string]storage.Range{
		"bytes=5-":                    {Offset: 5},
		"bytes=0-0":                   {Length: 1},
		"bytes=5-14":                  {Offset: 5, Length: 10},
		"bytes=1-":                    {Offset: 1, Length: math.MaxInt64},
		"bytes=0-9223372036854775806": {Length: math.MaxInt64},
	} {
		if got := formatRange(r); got != want {
			t.Errorf("%+v gives %q; want %q", r, got, want)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-99/1000", "bytes 5-5/6", "bytes */10", "bytes 0-9/*", "", "bytes 9-1/10", "bytes -1-2/3", "bytes 0-9223372036854775807/9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseContentRange(s)
		if ok && (got.from < 0 || got.to <= got.from || got.to > got.total) {
			t.Fatalf("%q gives %+v", s, got)
		}
	})
}

func FuzzDigestHeader(f *testing.F) {
	f.Add("AAAAAAAAAAA=")
	f.Add("AAAAAAAAAAA=-2")
	f.Fuzz(func(t *testing.T, s string) {
		if d, ok := decodeDigest(&s); ok {
			if again, ok := decodeDigest(func() *string { e := encodeDigest(d); return &e }()); !ok || again != d {
				t.Fatalf("%q gives %s, which does not come back", s, d)
			}
		}
	})
}

// TestBuffersKeepTheirBudget lets many borrowers in and out and counts.
func TestBuffersKeepTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1<<20, 8<<20).Draw(t, "budget")
		part := budget / rapid.Int64Range(1, 8).Draw(t, "parts")
		b := newBuffers(budget, part)
		sizes := rapid.SliceOfN(rapid.Int64Range(0, budget), 1, 40).Draw(t, "sizes")
		var held [][]byte
		over, cancel := context.WithCancel(context.Background())
		cancel() // a get that has to wait fails at once
		for _, size := range sizes {
			var lent int64
			for _, buf := range held {
				lent += int64(cap(buf))
			}
			ctx, fits := over, lent+b.classOf(size) <= budget
			if fits {
				ctx = context.Background()
			}
			buf, err := b.get(ctx, size)
			switch {
			case fits != (err == nil):
				t.Fatalf("%d bytes, %d of %d lent: %v", size, lent, budget, err)
			case err != nil:
				b.put(held[0])
				held = held[1:]
			case int64(len(buf)) != size:
				t.Fatalf("asked for %d bytes, got %d", size, len(buf))
			default:
				held = append(held, buf)
			}
			var kept int64
			for class, free := range b.kept {
				kept += class * int64(len(free))
			}
			lent = 0
			for _, buf := range held {
				lent += int64(cap(buf))
			}
			if kept+lent != b.size || lent > budget || b.size > budget+part {
				t.Fatalf("kept %d, lent %d, counted %d; the budget is %d", kept, lent, b.size, budget)
			}
		}
	})
}

func TestBufferLargerThanBudget(t *testing.T) {
	b := newBuffers(1<<20, 1<<19)
	buf, err := b.get(t.Context(), 3<<20)
	if err != nil || len(buf) != 3<<20 {
		t.Fatalf("got %d bytes, %v", len(buf), err)
	}
	b.put(buf)
	if b.size != 0 {
		t.Errorf("%d bytes are kept", b.size)
	}
}

// TestBuffersAreNotShared lets borrowers write into their buffers and look
// whether somebody else did.
func TestBuffersAreNotShared(t *testing.T) {
	b := newBuffers(256<<10, 128<<10)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 200 {
				buf, err := b.get(t.Context(), int64(20_000+i*1000))
				if err != nil {
					t.Error(err)
					return
				}
				for j := range buf {
					buf[j] = byte(i)
				}
				for _, got := range buf {
					if got != byte(i) {
						t.Errorf("a buffer is lent twice")
						break
					}
				}
				b.put(buf)
			}
		})
	}
	wg.Wait()
}

func TestPayload(t *testing.T) {
	data := bytesFor(1000)
	t.Run("attempts read on their own", func(t *testing.T) {
		p := newPayload(data)
		a, b := p.open(), p.open()
		io.CopyN(io.Discard, a, 500)
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	})
	t.Run("stopped before the last byte", func(t *testing.T) {
		p := newPayload(data)
		r := p.open()
		io.CopyN(io.Discard, r, 999)
		cause := errors.New("stop")
		if !p.stop(cause) {
			t.Fatal("stop came too late")
		}
		if n, err := r.Read(make([]byte, 10)); n != 0 || err != cause {
			t.Fatalf("%d bytes left after the stop, %v", n, err)
		}
		if p.maybeVisible() || !errors.Is(p.begin(), cause) {
			t.Error("the payload goes on")
		}
	})
	t.Run("stopped after the last byte", func(t *testing.T) {
		p := newPayload(data)
		io.Copy(io.Discard, p.open())
		if p.stop(errors.New("stop")) || !p.maybeVisible() {
			t.Fatal("the last byte has left, but is said to be here")
		}
	})
	t.Run("release waits for a write", func(t *testing.T) {
		p := newPayload(data)
		r := p.open()
		if _, err := r.lend(10); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { p.release(); close(done) }()
		for {
			if _, err := p.open().Read(make([]byte, 1)); err == errReleased {
				break // release has begun
			}
		}
		select {
		case <-done:
			t.Fatal("the buffer was given back while it was written")
		default:
		}
		r.back()
		<-done
	})
}
