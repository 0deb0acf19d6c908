package s3a

import (
	"context"
	"slices"
	"strings"

	"hbackup"
	"hbackup/bench"
)

// Delete removes a file or a tree.
func (f *fileSystem) Delete(ctx context.Context, path string) error {
	if there, err := f.deleteAt(ctx, path); err != nil || !there || underMagic(path) {
		return err
	}
	return f.keepDir(ctx, bench.Parent(path))
}

// deleteAt reports whether there was anything.
func (f *fileSystem) deleteAt(ctx context.Context, path string) (bool, error) {
	_, err := f.head(ctx, f.root+path)
	switch {
	case err == nil:
		return true, f.deleteOne(ctx, path)
	case !hbackup.IsKind(err, hbackup.KindNotFound):
		return false, err
	}
	there, empty, err := f.probe(ctx, path)
	switch {
	case err != nil || !there:
		return false, err
	case empty:
		return true, f.deleteOne(ctx, path+"/")
	}
	return true, f.deleteTree(ctx, path)
}

// deleteTree lists everything in a directory and deletes page by page, in each the
// files before the markers.
func (f *fileSystem) deleteTree(ctx context.Context, path string) error {
	prefix := f.root + path + "/"
	keys := []string{}
	err := f.t().list(ctx, prefix, func(key string, _ int64) { keys = append(keys, key) })
	if err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(bulkDelete, len(keys))
		var files, markers []string
		for _, key := range keys[:n] {
			if strings.HasSuffix(key, "/") {
				markers = append(markers, key)
			} else {
				files = append(files, key)
			}
		}
		slices.Reverse(markers) // the deepest first: some stores keep folders
		if err := f.deleteMany(ctx, files); err != nil {
			return err
		}
		if err := f.deleteMany(ctx, markers); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
