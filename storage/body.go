package storage

import (
	"context"
	"fmt"
	"io"

	"hbackup"
)

// Body reads what is put and holds it to its promise: it ends in io.EOF only
// after exactly the declared number of bytes, with the expected digest if there
// is one, and with the context still alive. A store that publishes after EOF,
// and only then, keeps that part of the contract.
type Body struct {
	ctx  context.Context
	r    io.Reader
	opts PutOptions
	read int64
	sum  Digest
	err  error // the last word, repeated from then on
}

// NewBody gives the Body of a put.
func NewBody(ctx context.Context, r io.Reader, opts PutOptions) *Body {
	return &Body{ctx: ctx, r: r, opts: opts}
}

// Digest gives the digest of the bytes read so far.
func (b *Body) Digest() Digest { return b.sum }

// Err gives the error that the body ended with, nil after a good end or before
// any end. It tells a failure of the source from one of the store.
func (b *Body) Err() error {
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// Read gives the next bytes of the body.
func (b *Body) Read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	n := 0
	if left := b.opts.Size - b.read; left > 0 {
		n, b.err = b.next(p[:min(int64(len(p)), left)])
		b.read += int64(n)
		b.sum = AddDigest(b.sum, p[:n])
	}
	if b.err == nil && b.read == b.opts.Size {
		b.err = b.end()
	}
	return n, b.err
}

// next reads once; an end of the source is an error here.
func (b *Body) next(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	switch {
	case n < 0 || n > len(p):
		return 0, fmt.Errorf("the body's reader claims %d bytes of %d", n, len(p))
	case err == nil:
		return n, nil
	case err != io.EOF: // a wrapped EOF, too, is a failure of the source
		return n, err
	case b.read+int64(n) < b.opts.Size:
		return n, hbackup.Errorf("read body", "", hbackup.KindCorrupt, "it ended after %d bytes; %d were announced", b.read+int64(n), b.opts.Size)
	}
	return n, nil
}

// end checks that nothing follows the last byte, and gives io.EOF when all is
// well.
func (b *Body) end() error {
	var one [1]byte
	for empty := 0; ; empty++ {
		n, err := b.r.Read(one[:])
		switch {
		case n != 0:
			return hbackup.Errorf("read body", "", hbackup.KindCorrupt, "it is longer than the %d bytes announced", b.opts.Size)
		case err == nil && empty < 100:
			continue
		case err == nil:
			return io.ErrNoProgress
		case err != io.EOF:
			return err
		}
		break
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if want := b.opts.Digest; want != nil && *want != b.sum {
		return hbackup.Errorf("read body", "", hbackup.KindCorrupt, "its digest is %s; %s was expected", b.sum, *want)
	}
	return io.EOF
}
