package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"hbackup"
)

// chunks gives its content in pieces of drawn sizes, some of them empty, the
// last one with or without the final error.
type chunks struct {
	t    *rapid.T
	data []byte
	end  error
}

func (c *chunks) Read(p []byte) (int, error) {
	n := copy(p, c.data[:min(len(c.data), rapid.IntRange(0, 20).Draw(c.t, "n"))])
	c.data = c.data[n:]
	if len(c.data) == 0 && (n == 0 || rapid.Bool().Draw(c.t, "with the end")) {
		return n, c.end
	}
	return n, nil
}

// TestBody reads bodies of the right and of wrong sizes and digests, with good
// and bad ends.
func TestBody(t *testing.T) {
	errSource := errors.New("the source broke")
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
		size := int64(len(data)) + rapid.SampledFrom([]int64{0, 0, 0, 1, -1, 7, -7}).Draw(t, "off by")
		if size < 0 {
			return
		}
		opts := PutOptions{Size: size}
		rightDigest := true
		if rapid.Bool().Draw(t, "digest") {
			d := DigestOf(data)
			if rapid.Bool().Draw(t, "wrong") {
				d, rightDigest = d^1, false
			}
			opts.Digest = &d
		}
		end := rapid.SampledFrom([]error{io.EOF, io.EOF, errSource}).Draw(t, "end")
		b := NewBody(context.Background(), &chunks{t, data, end}, opts)
		got, err := io.ReadAll(b)
		if max := min(int64(len(data)), size); int64(len(got)) > max || !bytes.Equal(got, data[:len(got)]) {
			t.Fatalf("the body gave %d bytes of %d", len(got), len(data))
		}
		switch {
		case size < int64(len(data)):
			if !hbackup.IsKind(err, hbackup.KindCorrupt) {
				t.Fatalf("a longer body ended with %v", err)
			}
		case end == errSource:
			if !errors.Is(err, errSource) {
				t.Fatalf("a broken body ended with %v", err)
			}
		case size > int64(len(data)) || !rightDigest:
			if !hbackup.IsKind(err, hbackup.KindCorrupt) {
				t.Fatalf("a wrong body ended with %v", err)
			}
		default:
			if err != nil || b.Digest() != DigestOf(data) || !bytes.Equal(got, data) {
				t.Fatalf("a good body ended with %v, %d of %d bytes", err, len(got), len(data))
			}
		}
		if _, again := b.Read(make([]byte, 1)); err != nil && again != err || err == nil && again != io.EOF || b.Err() != err {
			t.Fatalf("after %v the body says %v, and %v", err, again, b.Err())
		}
	})
}

func TestBodyOfBadReaders(t *testing.T) {
	read := func(r io.Reader, size int64) error {
		_, err := io.Copy(io.Discard, NewBody(context.Background(), r, PutOptions{Size: size}))
		return err
	}
	if err := read(iotest.ErrReader(io.ErrUnexpectedEOF), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated source gave %v", err)
	}
	if err := read(claimer{}, 5); err == nil {
		t.Error("a reader that claims more than it was given room for was believed")
	}
	if err := read(nothing{}, 0); err != io.ErrNoProgress {
		t.Errorf("a reader that never ends gave %v", err)
	}
}

type claimer struct{}

func (claimer) Read(p []byte) (int, error) { return len(p) + 1, nil }

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func TestVerifyReader(t *testing.T) {
	data := []byte("0123456789")
	right := DigestOf(data)
	for _, c := range []struct {
		data   string
		digest Digest
		kind   hbackup.Kind
	}{
		{"0123456789", right, ""}, {"012345678", right, hbackup.KindIncomplete}, {"", right, hbackup.KindIncomplete},
		{"01234567890", right, hbackup.KindCorrupt}, {"0123456780", right, hbackup.KindCorrupt}, {"0123456789", right + 1, hbackup.KindCorrupt},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"plain": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "eof": iotest.DataErrReader, "half": iotest.HalfReader,
		} {
			v := VerifyReader(wrap(bytes.NewReader([]byte(c.data))), 10, c.digest)
			got, err := io.ReadAll(v)
			if c.kind == "" && (err != nil || string(got) != c.data) || c.kind != "" && !hbackup.IsKind(err, c.kind) {
				t.Errorf("%s %q: gave %q, %v; want %q", name, c.data, got, err, c.kind)
			}
			if len(got) > 10 {
				t.Errorf("%s %q: gave %d bytes", name, c.data, len(got))
			}
		}
	}
	if _, err := io.ReadAll(VerifyReader(iotest.ErrReader(io.ErrClosedPipe), 10, right)); err != io.ErrClosedPipe {
		t.Errorf("a broken reader gave %v", err)
	}
}

func TestRangeOf(t *testing.T) {
	for _, c := range []struct {
		r              Range
		size           int64
		offset, length int64
		fails          bool
	}{
		{Range{}, 0, 0, 0, false}, {Range{}, 10, 0, 10, false}, {Range{Offset: 10}, 10, 10, 0, false}, {Range{Offset: 11}, 10, 0, 0, true},
		{Range{Length: 3}, 10, 0, 3, false}, {Range{Offset: 8, Length: 3}, 10, 8, 2, false}, {Range{Offset: 1, Length: 1<<63 - 1}, 10, 1, 9, false},
		{Range{Offset: -1}, 10, 0, 0, true}, {Range{Length: -1}, 10, 0, 0, true},
	} {
		offset, length, err := c.r.Of(c.size)
		if offset != c.offset || length != c.length || (err != nil) != c.fails || err != nil && !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%+v of %d gave %d, %d, %v", c.r, c.size, offset, length, err)
		}
	}
}
