package rootfstest

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"hbackup"
)

// What becomes of a file's bytes.

func (s suite) roundTrip(t *testing.T, dir string) {
	before := time.Now().Add(-time.Minute)
	for i, size := range []int{0, 1, 511, 512, 513, 65536, 65537, 256 << 10, 256<<10 + 1, 1<<20 - 1, 3<<20*s.scale + 17} {
		p := path.Join(dir, fmt.Sprint("f", i))
		want := content(size)
		s.write(t, p, want, []int{1 << 20, 100_000, 4096, 1 << 30}[i%4])
		got, info := s.read(t, p, 0)
		equal(t, p, want, got)
		stat, err := s.fs.Stat(s.ctx, p)
		must(t, err)
		if stat != info {
			t.Errorf("Stat gives %+v, Open gave %+v", stat, info)
		}
		if stat.Size != int64(size) || stat.Dir || stat.Path != p || stat.Name != path.Base(p) {
			t.Errorf("%s: %+v", p, stat)
		}
		if stat.Modified.Before(before) || stat.Modified.After(time.Now().Add(time.Minute)) || stat.Modified.Location() != time.UTC {
			t.Errorf("%s was modified at %v", p, stat.Modified)
		}
	}
}

func (s suite) offsets(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	want := content(300_000)
	s.write(t, p, want, 1<<20)
	for _, off := range []int64{0, 1, 511, 512, 65536, 262143, 262144, 299_999, 300_000} {
		got, info := s.read(t, p, off)
		equal(t, fmt.Sprint("from ", off), want[off:], got)
		if info.Size != 300_000 {
			t.Errorf("from %d: the size is %d", off, info.Size)
		}
	}
	for _, off := range []int64{-1, 300_001, 1 << 40} {
		_, _, err := s.fs.Open(s.ctx, p, off)
		wantKind(t, err, hbackup.KindUsage)
	}
	// The same bytes however they are asked for.
	for _, ask := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader} {
		r, _, err := s.fs.Open(s.ctx, p, 200_000)
		must(t, err)
		got, err := io.ReadAll(ask(r))
		must(t, err)
		must(t, r.Close())
		equal(t, "in odd steps", want[200_000:], got)
	}
	r, _, err := s.fs.Open(s.ctx, p, 0)
	must(t, err)
	var buf bytes.Buffer
	_, err = io.CopyBuffer(&buf, r, make([]byte, 1<<20))
	must(t, err)
	must(t, r.Close())
	equal(t, "copied", want, buf.Bytes())
	// A reader that is closed early.
	r, _, err = s.fs.Open(s.ctx, p, 0)
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 1000))
	must(t, err)
	must(t, r.Close())
	if n, err := r.Read(make([]byte, 10)); err == nil || err == io.EOF {
		t.Errorf("a closed reader gave %d, %v", n, err)
	}
}

func (s suite) exclusive(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	s.write(t, p, []byte("first"), 10)
	_, err := s.fs.Create(s.ctx, p)
	wantKind(t, err, hbackup.KindExists)
	got, _ := s.read(t, p, 0)
	equal(t, p, []byte("first"), got)
	// Also while the other is still being written.
	q := path.Join(dir, "g")
	w, err := s.fs.Create(s.ctx, q)
	must(t, err)
	_, err = s.fs.Create(s.ctx, q)
	wantKind(t, err, hbackup.KindExists)
	_, err = w.Write([]byte("mine"))
	must(t, err)
	must(t, w.Close())
	got, _ = s.read(t, q, 0)
	equal(t, q, []byte("mine"), got)
}

func (s suite) race(t *testing.T, dir string) {
	for round := range 3 {
		p := path.Join(dir, fmt.Sprint("f", round))
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				w, err := s.fs.Create(s.ctx, p)
				if err != nil {
					if !hbackup.IsKind(err, hbackup.KindExists) {
						t.Errorf("a loser got %v", err)
					}
					return
				}
				won.Add(1)
				if _, err := fmt.Fprintf(w, "writer %d", i); err != nil {
					t.Error(err)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 16 creators won", won.Load())
		}
		if got, _ := s.read(t, p, 0); !bytes.HasPrefix(got, []byte("writer ")) {
			t.Errorf("the file holds %q", got)
		}
	}
}

func (s suite) abort(t *testing.T, dir string) {
	for i, size := range []int{0, 10, 200_000, 3 << 20} {
		p := path.Join(dir, fmt.Sprint("f", i))
		w, err := s.fs.Create(s.ctx, p)
		must(t, err)
		_, err = w.Write(content(size))
		must(t, err)
		must(t, w.Abort())
		_, err = s.fs.Stat(s.ctx, p)
		wantKind(t, err, hbackup.KindNotFound)
		s.write(t, p, []byte("again"), 10) // the name is free again
	}
}

func (s suite) ended(t *testing.T, dir string) {
	w, err := s.fs.Create(s.ctx, path.Join(dir, "f"))
	must(t, err)
	_, err = w.Write([]byte("x"))
	must(t, err)
	must(t, w.Close())
	if err := w.Close(); err == nil {
		t.Error("the second Close gave no error")
	}
	if err := w.Abort(); err == nil {
		t.Error("Abort after Close gave no error")
	}
	if _, err := w.Write([]byte("y")); err == nil {
		t.Error("Write after Close gave no error")
	}
	got, _ := s.read(t, path.Join(dir, "f"), 0)
	equal(t, "f", []byte("x"), got)
	w, err = s.fs.Create(s.ctx, path.Join(dir, "g"))
	must(t, err)
	must(t, w.Abort())
	if err := w.Close(); err == nil {
		t.Error("Close after Abort gave no error")
	}
	_, err = s.fs.Stat(s.ctx, path.Join(dir, "g"))
	wantKind(t, err, hbackup.KindNotFound)
}

func (s suite) publish(t *testing.T, dir string) {
	from, to := path.Join(dir, "from"), path.Join(dir, "to")
	want := content(200_000)
	s.write(t, from, want, 1<<20)
	must(t, s.fs.Publish(s.ctx, from, to))
	got, _ := s.read(t, to, 0)
	equal(t, to, want, got)
	_, err := s.fs.Stat(s.ctx, from)
	wantKind(t, err, hbackup.KindNotFound)
	// Nothing is replaced, not even by the same bytes.
	s.write(t, from, []byte("other"), 10)
	wantKind(t, s.fs.Publish(s.ctx, from, to), hbackup.KindExists)
	got, _ = s.read(t, to, 0)
	equal(t, to, want, got)
	got, _ = s.read(t, from, 0)
	equal(t, from, []byte("other"), got)
	wantKind(t, s.fs.Publish(s.ctx, path.Join(dir, "none"), path.Join(dir, "new")), hbackup.KindNotFound)
	wantKind(t, s.fs.Publish(s.ctx, from, path.Join(dir, "no", "parent")), hbackup.KindNotFound)
	wantKind(t, s.fs.Publish(s.ctx, from, "/"), hbackup.KindRefused)
}

func (s suite) publishRace(t *testing.T, dir string) {
	to := path.Join(dir, "to")
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		from := path.Join(dir, fmt.Sprint("f", i))
		s.write(t, from, fmt.Appendf(nil, "writer %d", i), 100)
		wg.Go(func() {
			err := s.fs.Publish(s.ctx, from, to)
			if err == nil {
				won.Add(1)
			} else if !hbackup.IsKind(err, hbackup.KindExists) {
				t.Errorf("a loser got %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 8 won", won.Load())
	}
}

// takenOver ends a file that somebody has removed and written again.
func (s suite) takenOver(t *testing.T, dir string) {
	for _, abort := range []bool{false, true} {
		p := path.Join(dir, fmt.Sprint("f", abort))
		w, err := s.fs.Create(s.ctx, p)
		must(t, err)
		_, err = w.Write([]byte("mine"))
		must(t, err)
		must(t, s.fs.Remove(s.ctx, p))
		s.write(t, p, []byte("the other's"), 100)
		if abort {
			must(t, w.Abort())
		} else if err := w.Close(); err == nil {
			t.Error("a file that is not there any more was closed well")
		}
		got, _ := s.read(t, p, 0)
		equal(t, p, []byte("the other's"), got)
	}
}
