// Package rootfstest is the conformance suite of rootfs.FS: what every
// implementation must do, run against each of them.
package rootfstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// Run tests fs below base, an existing empty directory. scale multiplies the
// sizes of the larger files: 1 is for quick tests.
func Run(t *testing.T, fs rootfs.FS, base string, scale int) {
	ctx := t.Context()
	dir := func(t *testing.T) string {
		d := path.Join(base, strings.ReplaceAll(path.Base(t.Name()), " ", "-"))
		must(t, fs.MkdirAll(ctx, d))
		return d
	}
	counted, counter := rootfs.Counted(fs)
	s := suite{fs: counted, ctx: ctx, scale: scale}
	for _, test := range []struct {
		name string
		run  func(suite, *testing.T, string)
	}{
		{"what is written is read", suite.roundTrip},
		{"reading from an offset", suite.offsets},
		{"create is exclusive", suite.exclusive},
		{"one creator of many wins", suite.race},
		{"nothing is left of an aborted file", suite.abort},
		{"ended writers", suite.ended},
		{"listing", suite.listing},
		{"missing things", suite.missing},
		{"files and directories are not mixed up", suite.mixUps},
		{"removing", suite.removing},
		{"paths", suite.paths},
		{"ended contexts", suite.contexts},
		{"many readers and writers at once", suite.concurrent},
		{"removed while read", suite.removedWhileRead},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(s, t, dir(t))
			if r, w := counter.OpenReaders.Load(), counter.OpenWriters.Load(); r != 0 || w != 0 {
				t.Errorf("the test left %d readers and %d writers open", r, w)
			}
		})
	}
}

type suite struct {
	fs    rootfs.FS
	ctx   context.Context
	scale int
}

// content gives n bytes that differ from any other place's.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), 7})
	r.Read(b)
	return b
}

func (s suite) write(t *testing.T, p string, b []byte, step int) {
	t.Helper()
	w, err := s.fs.Create(s.ctx, p)
	must(t, err)
	for rest := b; len(rest) > 0; {
		n, err := w.Write(rest[:min(step, len(rest))])
		must(t, err)
		rest = rest[n:]
	}
	must(t, w.Close())
}

func (s suite) read(t *testing.T, p string, offset int64) ([]byte, rootfs.Info) {
	t.Helper()
	r, info, err := s.fs.Open(s.ctx, p, offset)
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, err)
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("a read after the end gave %d, %v", n, err)
	}
	must(t, r.Close())
	return b, info
}

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

func (s suite) listing(t *testing.T, dir string) {
	names := []string{"B", "a", "a.b", "a-b", "a=b", ".hidden", "z z", "é", "_SeqId_4_", "00", "t2=abc-def", "100%", "a+b&c"}
	for _, n := range names {
		s.write(t, path.Join(dir, n), []byte(n), 100)
	}
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "sub", "deep")))
	got, err := s.fs.ReadDir(s.ctx, dir)
	must(t, err)
	if len(got) != len(names)+1 {
		t.Fatalf("%d entries listed, not %d: %+v", len(got), len(names)+1, got)
	}
	for i, e := range got {
		if i > 0 && got[i-1].Name >= e.Name {
			t.Errorf("%q is listed before %q", got[i-1].Name, e.Name)
		}
		stat, err := s.fs.Stat(s.ctx, e.Path)
		must(t, err)
		if stat != e {
			t.Errorf("listed as %+v, Stat gives %+v", e, stat)
		}
		if e.Name == "sub" != e.Dir || !e.Dir && e.Size != int64(len(e.Name)) {
			t.Errorf("%+v", e)
		}
	}
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "sub", "deep"))) // again
	empty, err := s.fs.ReadDir(s.ctx, path.Join(dir, "sub", "deep"))
	must(t, err)
	if len(empty) != 0 {
		t.Errorf("an empty directory lists %+v", empty)
	}
}

func (s suite) missing(t *testing.T, dir string) {
	p := path.Join(dir, "nothing")
	_, err := s.fs.Stat(s.ctx, p)
	wantKind(t, err, hbackup.KindNotFound)
	if !strings.Contains(err.Error(), s.fs.URI()+p) {
		t.Errorf("the error does not name the file: %v", err)
	}
	_, _, err = s.fs.Open(s.ctx, p, 0)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = s.fs.ReadDir(s.ctx, p)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = s.fs.Create(s.ctx, path.Join(p, "child"))
	wantKind(t, err, hbackup.KindNotFound)
	must(t, s.fs.Remove(s.ctx, p))
	must(t, s.fs.RemoveAll(s.ctx, p))
	must(t, s.fs.Remove(s.ctx, path.Join(p, "child")))
}

func (s suite) mixUps(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	s.write(t, p, []byte("x"), 10)
	_, _, err := s.fs.Open(s.ctx, dir, 0)
	wantKind(t, err, hbackup.KindConflict)
	_, err = s.fs.ReadDir(s.ctx, p)
	wantKind(t, err, hbackup.KindConflict)
	if err := s.fs.MkdirAll(s.ctx, p); err == nil || hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("making a directory over a file gave %v", err)
	}
	if _, err := s.fs.Create(s.ctx, path.Join(p, "child")); err == nil || hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("creating a file below a file gave %v", err)
	}
	_, err = s.fs.Create(s.ctx, dir)
	wantKind(t, err, hbackup.KindExists)
	got, _ := s.read(t, p, 0)
	equal(t, p, []byte("x"), got)
}

func (s suite) removing(t *testing.T, dir string) {
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "a/b")))
	s.write(t, path.Join(dir, "a/b/f"), []byte("x"), 10)
	err := s.fs.Remove(s.ctx, path.Join(dir, "a"))
	wantKind(t, err, hbackup.KindConflict)
	got, _ := s.read(t, path.Join(dir, "a/b/f"), 0)
	equal(t, "f", []byte("x"), got)
	must(t, s.fs.Remove(s.ctx, path.Join(dir, "a/b/f")))
	must(t, s.fs.Remove(s.ctx, path.Join(dir, "a/b")))
	s.write(t, path.Join(dir, "a/g"), []byte("x"), 10)
	must(t, s.fs.RemoveAll(s.ctx, path.Join(dir, "a")))
	left, err := s.fs.ReadDir(s.ctx, dir)
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left over: %+v", left)
	}
}

func (s suite) paths(t *testing.T, dir string) {
	for _, p := range []string{"", "relative", dir + "/", dir + "//f", dir + "/../f", dir + "/./f", dir + "/f\x00"} {
		_, err := s.fs.Stat(s.ctx, p)
		wantKind(t, err, hbackup.KindUsage)
		_, err = s.fs.Create(s.ctx, p)
		wantKind(t, err, hbackup.KindUsage)
		wantKind(t, s.fs.RemoveAll(s.ctx, p), hbackup.KindUsage)
	}
	wantKind(t, s.fs.RemoveAll(s.ctx, "/"), hbackup.KindRefused)
	wantKind(t, s.fs.Remove(s.ctx, "/"), hbackup.KindRefused)
	root, err := s.fs.Stat(s.ctx, "/")
	must(t, err)
	if !root.Dir || root.Path != "/" {
		t.Errorf("the root is %+v", root)
	}
}

func (s suite) contexts(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	s.write(t, p, content(1<<20), 1<<20)
	over, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.fs.Stat(over, p)
	wantKind(t, err, hbackup.KindInterrupted)
	_, _, err = s.fs.Open(over, p, 0)
	wantKind(t, err, hbackup.KindInterrupted)
	_, err = s.fs.Create(over, path.Join(dir, "g"))
	wantKind(t, err, hbackup.KindInterrupted)
	wantKind(t, s.fs.Remove(over, p), hbackup.KindInterrupted)

	during, cancel := context.WithCancel(s.ctx)
	r, _, err := s.fs.Open(during, p, 0)
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	must(t, err)
	w, err := s.fs.Create(during, path.Join(dir, "h"))
	must(t, err)
	_, err = w.Write(content(100_000))
	must(t, err)
	cancel()
	_, err = io.Copy(io.Discard, r)
	wantKind(t, err, hbackup.KindInterrupted)
	must(t, r.Close())
	err = w.Close()
	wantKind(t, err, hbackup.KindInterrupted)
	_, err = s.fs.Stat(s.ctx, path.Join(dir, "h"))
	wantKind(t, err, hbackup.KindNotFound)

	late, cancel := context.WithCancel(s.ctx)
	w, err = s.fs.Create(late, path.Join(dir, "i"))
	must(t, err)
	cancel()
	must(t, w.Abort())
	_, err = s.fs.Stat(s.ctx, path.Join(dir, "i"))
	wantKind(t, err, hbackup.KindNotFound)
}

func (s suite) concurrent(t *testing.T, dir string) {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			p := path.Join(dir, fmt.Sprint("f", i))
			want := content(200_000*s.scale + i)
			if err := s.writeRead(p, want); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		})
	}
	wg.Wait()
	infos, err := s.fs.ReadDir(s.ctx, dir)
	must(t, err)
	ids := map[uint64]string{}
	for _, i := range infos {
		if i.ID != 0 && ids[i.ID] != "" {
			t.Errorf("%s and %s have the same id %d", i.Name, ids[i.ID], i.ID)
		}
		ids[i.ID] = i.Name
	}
	if len(infos) != 12 {
		t.Errorf("%d files, not 12", len(infos))
	}
}

func (s suite) writeRead(p string, want []byte) error {
	w, err := s.fs.Create(s.ctx, p)
	if err != nil {
		return err
	}
	if _, err := w.Write(want); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Close(); err != nil {
		return err
	}
	for range 3 {
		r, _, err := s.fs.Open(s.ctx, p, 0)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return errors.New("other bytes were read than written")
		}
	}
	return nil
}

// removedWhileRead: HBase moves store files away while they are read; the bytes
// must come all the same, or an error, never a short read.
func (s suite) removedWhileRead(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	want := content(2 << 20 * s.scale)
	s.write(t, p, want, 1<<20)
	r, _, err := s.fs.Open(s.ctx, p, 0)
	must(t, err)
	head := make([]byte, 10)
	_, err = io.ReadFull(r, head)
	must(t, err)
	must(t, s.fs.Remove(s.ctx, p))
	rest, err := io.ReadAll(r)
	if err == nil {
		equal(t, "the removed file", want, append(head, rest...))
	} else {
		wantKind(t, err, hbackup.KindNotFound)
	}
	must(t, r.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("the error is %v (kind %q), not of kind %q", err, hbackup.KindOf(err), kind)
	}
}

func equal(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	t.Fatalf("%s: %d bytes, not %d; they differ from byte %d on", what, len(got), len(want), i)
}
