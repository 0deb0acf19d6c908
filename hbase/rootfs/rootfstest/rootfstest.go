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
	"testing"

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
		{"a file that was taken over is let be", suite.takenOver},
		{"ended writers", suite.ended},
		{"publishing replaces nothing", suite.publish},
		{"one publisher of many wins", suite.publishRace},
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
