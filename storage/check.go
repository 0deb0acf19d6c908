package storage

import (
	"context"

	"hbackup"
)

// Check is what every method of a store does first: it gives KindInterrupted or
// KindTimeout when ctx is over and KindUsage when the key cannot be used. Op is
// the step in the words of errors: "put", "get".
func Check(ctx context.Context, op string, l Location, key Key) error {
	if err := ctx.Err(); err != nil {
		return hbackup.E(op, l.At(key), hbackup.KindOther, err)
	}
	if err := key.Validate(); err != nil {
		return hbackup.E(op, l.At(key), hbackup.KindUsage, err)
	}
	return nil
}

// CheckPut is Check for Put: it also refuses options that cannot be.
func CheckPut(ctx context.Context, l Location, key Key, opts PutOptions) error {
	if err := Check(ctx, "put", l, key); err != nil {
		return err
	}
	if opts.Size < 0 {
		return hbackup.Errorf("put", l.At(key), hbackup.KindUsage, "the size %d is negative", opts.Size)
	}
	return nil
}

// Of gives the bytes of an object of the given size that the range covers. The
// end of the object is in range, for no bytes; what lies behind it is an error.
func (r Range) Of(size int64) (offset, length int64, err error) {
	switch {
	case r.Offset < 0 || r.Length < 0:
		return 0, 0, hbackup.Errorf("check range", "", hbackup.KindUsage, "the range of %d bytes from %d cannot be", r.Length, r.Offset)
	case r.Offset > size:
		return 0, 0, hbackup.Errorf("check range", "", hbackup.KindUsage, "the offset %d lies behind the end of the object, %d", r.Offset, size)
	}
	length = size - r.Offset
	if r.Length > 0 && r.Length < length {
		length = r.Length
	}
	return r.Offset, length, nil
}
