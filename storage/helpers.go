package storage

import (
	"bytes"
	"context"
	"errors"
	"io"

	"hbackup"
)

// ReadAll reads a whole object into memory. One that is larger than limit bytes
// is refused with KindCorrupt before anything of it is read: it cannot be what
// the caller takes it for. The bytes are checked against the digest that the
// store keeps, if it gives one.
func ReadAll(ctx context.Context, s Store, key Key, limit int64) (data []byte, obj Object, err error) {
	body, obj, err := s.Get(ctx, key, Range{})
	if err != nil {
		return nil, obj, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	path := s.Location().At(key)
	if obj.Size > limit {
		return nil, obj, hbackup.Errorf("read", path, hbackup.KindCorrupt, "it has %d bytes; at most %d are expected", obj.Size, limit)
	}
	data = make([]byte, obj.Size)
	if n, err := io.ReadFull(body, data); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = hbackup.Errorf("read", path, hbackup.KindIncomplete, "it ended after %d of %d bytes", n, obj.Size)
		}
		return nil, obj, err
	}
	got := DigestOf(data)
	if obj.HasDigest && got != obj.Digest {
		return nil, obj, hbackup.Errorf("read", path, hbackup.KindCorrupt, "its digest is %s; the store has %s", got, obj.Digest)
	}
	obj.Digest, obj.HasDigest = got, true
	return data, obj, nil
}

// PutBytes writes a small object from memory.
func PutBytes(ctx context.Context, s Store, key Key, data []byte, ifAbsent bool) (Object, error) {
	digest := DigestOf(data)
	return s.Put(ctx, key, bytes.NewReader(data), PutOptions{Size: int64(len(data)), IfAbsent: ifAbsent, Digest: &digest})
}

// SettleCreate finds out what became of a PutBytes with ifAbsent that failed with
// cause, which is not KindExists: the answer may have been lost. It gives nil when
// these very bytes are there and durable, and cause otherwise. That they can be read
// is not enough: a store may show what it could not make durable. So it tries once
// more, and a store says KindExists only of what is.
func SettleCreate(ctx context.Context, s Store, key Key, data []byte, cause error) error {
	got, _, err := ReadAll(ctx, s, key, int64(len(data))+1)
	if err != nil || !bytes.Equal(got, data) {
		return cause
	}
	if _, err := PutBytes(ctx, s, key, data, true); err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
		return cause
	}
	return nil
}

// Exists reports whether there is an object under the key.
func Exists(ctx context.Context, s Store, key Key) (bool, error) {
	_, err := s.Stat(ctx, key)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}
