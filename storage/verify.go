package storage

import (
	"io"

	"hbackup"
)

// VerifyReader gives the bytes of r and fails at their end unless there were
// exactly size of them with that digest: KindIncomplete for fewer, KindCorrupt
// for more or for others. The bytes before the end are given out unchecked, so
// nothing may be published before the io.EOF.
func VerifyReader(r io.Reader, size int64, digest Digest) io.Reader {
	return &verifier{r: r, left: size, size: size, want: digest}
}

type verifier struct {
	r    io.Reader
	left int64
	size int64
	sum  Digest
	want Digest
	err  error
}

func (v *verifier) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	if int64(n) > v.left {
		v.err = hbackup.Errorf("verify", "", hbackup.KindCorrupt, "it is longer than %d bytes", v.size)
		return 0, v.err
	}
	v.left -= int64(n)
	v.sum = AddDigest(v.sum, p[:n])
	if err == io.EOF {
		err = v.end()
	}
	v.err = err
	return n, err
}

func (v *verifier) end() error {
	switch {
	case v.left > 0:
		return hbackup.Errorf("verify", "", hbackup.KindIncomplete, "it ended after %d of %d bytes", v.size-v.left, v.size)
	case v.sum != v.want:
		return hbackup.Errorf("verify", "", hbackup.KindCorrupt, "its digest is %s; it must be %s", v.sum, v.want)
	}
	return io.EOF
}
