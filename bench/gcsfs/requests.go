package gcsfs

import (
	"context"
	"errors"

	lib "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"hbackup/bench"
)

func (f *fileSystem) metadata(ctx context.Context, path string) (found, error) {
	o, err := f.bucket.Object(f.root + path).Attrs(ctx)
	if err != nil {
		return found{}, f.fail("look at", f.root+path, err)
	}
	return found{bench.Status{Path: path, Size: o.Size}, o.Generation}, nil
}

// isDir asks for the first names below a path.
func (f *fileSystem) isDir(ctx context.Context, path string) (bool, error) {
	prefix := f.root + path + "/"
	q := &lib.Query{Prefix: prefix}
	if err := q.SetAttrSelection([]string{"Name"}); err != nil {
		return false, f.fail("list", prefix, err)
	}
	it := f.bucket.Objects(ctx, q)
	it.PageInfo().MaxSize = 2
	_, err := it.Next()
	if errors.Is(err, iterator.Done) {
		return false, nil
	}
	if err != nil {
		return false, f.fail("list", prefix, err)
	}
	return true, nil
}

// Put writes an object with one request.
func (f *fileSystem) Put(ctx context.Context, path string, data []byte) error {
	w := f.bucket.Object(f.root + path).NewWriter(ctx)
	w.ChunkSize = 0
	_, err := w.Write(data)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return f.fail("insert", f.root+path, err)
	}
	return nil
}

func (f *fileSystem) rewrite(ctx context.Context, from, to string) error {
	o, err := f.bucket.Object(f.root + to).CopierFrom(f.bucket.Object(f.root + from)).Run(ctx)
	if err != nil {
		return f.fail("rewrite to", f.root+to, err)
	}
	f.meter.Copied(o.Size)
	return nil
}
