package s3a

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"hbackup"
	"hbackup/bench"
	"hbackup/engine"
)

// S3A's defaults.
const (
	copiesAtOnce = 10  // of a directory that is renamed
	bulkDelete   = 250 // keys of one request: fs.s3a.bulk.delete.page.size
)

// fileSystem is the folder as a file system.
type fileSystem Target

func (t *Target) fail(op, key string, err error) error {
	kind := hbackup.KindOther
	if isMissing(err) {
		kind = hbackup.KindNotFound
	}
	return hbackup.E(op, "s3://"+t.bucket+"/"+key, kind, err)
}

func isMissing(err error) bool {
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotFound
}

func (f *fileSystem) t() *Target { return (*Target)(f) }

func (f *fileSystem) missing(path string) error {
	return hbackup.Errorf("look at", "s3://"+f.bucket+"/"+f.root+path, hbackup.KindNotFound, "there is no file or directory")
}

// The single requests.

func (f *fileSystem) head(ctx context.Context, key string) (int64, error) {
	out, err := f.client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &f.bucket, Key: &key})
	if err != nil {
		return 0, f.t().fail("look at", key, err)
	}
	return aws.ToInt64(out.ContentLength), nil
}

// isDir asks for the first names below a path. A directory that has but its marker
// is empty.
func (f *fileSystem) isDir(ctx context.Context, path string) (bool, error) {
	there, _, err := f.probe(ctx, path)
	return there, err
}

func (f *fileSystem) probe(ctx context.Context, path string) (there, empty bool, err error) {
	prefix := f.root + path + "/"
	out, err := f.client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: &f.bucket, Prefix: &prefix, Delimiter: aws.String("/"), MaxKeys: aws.Int32(2)})
	if err != nil {
		return false, false, f.t().fail("list", prefix, err)
	}
	n := len(out.Contents) + len(out.CommonPrefixes)
	return n > 0, n == 1 && len(out.Contents) == 1 && aws.ToString(out.Contents[0].Key) == prefix, nil
}

// Put writes an object.
func (f *fileSystem) Put(ctx context.Context, path string, data []byte) error {
	key := f.root + path
	_, err := f.client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &f.bucket, Key: &key, Body: bytes.NewReader(data)})
	if err != nil {
		return f.t().fail("put", key, err)
	}
	return nil
}

// copy is copyFile of S3A.
func (f *fileSystem) copy(ctx context.Context, from, to string) error {
	size, err := f.head(ctx, f.root+from)
	if err != nil {
		return err
	}
	key, source := f.root+to, url.PathEscape(f.bucket+"/"+f.root+from)
	if _, err := f.client.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: &f.bucket, Key: &key, CopySource: &source}); err != nil {
		return f.t().fail("copy to", key, err)
	}
	f.meter.Copied(size)
	return nil
}

func (f *fileSystem) deleteOne(ctx context.Context, path string) error {
	key := f.root + path
	if _, err := f.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &f.bucket, Key: &key}); err != nil {
		return f.t().fail("delete", key, err)
	}
	return nil
}

// deleteMany removes up to bulkDelete objects. A single one has a request of its
// own kind.
func (f *fileSystem) deleteMany(ctx context.Context, keys []string) error {
	switch len(keys) {
	case 0:
		return nil
	case 1:
		return f.deleteOne(ctx, strings.TrimPrefix(keys[0], f.root))
	}
	in := &sdk.DeleteObjectsInput{Bucket: &f.bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
	for _, key := range keys {
		in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: &key})
	}
	out, err := f.client.DeleteObjects(ctx, in)
	switch {
	case err != nil:
		return f.t().fail("delete", keys[0], err)
	case len(out.Errors) > 0:
		return hbackup.Errorf("delete", "s3://"+f.bucket+"/"+aws.ToString(out.Errors[0].Key), hbackup.KindOther, "%s", aws.ToString(out.Errors[0].Message))
	}
	return nil
}

// What S3A makes of them.

// Status is getFileStatus.
func (f *fileSystem) Status(ctx context.Context, path string) (bench.Status, error) {
	size, err := f.head(ctx, f.root+path)
	if err == nil {
		return bench.Status{Path: path, Size: size}, nil
	}
	if !hbackup.IsKind(err, hbackup.KindNotFound) {
		return bench.Status{}, err
	}
	dir, err := f.isDir(ctx, path)
	if err == nil && !dir {
		err = f.missing(path)
	}
	return bench.Status{Path: path, Dir: true}, err
}

// Create looks for a file or directory under the path first.
func (f *fileSystem) Create(ctx context.Context, path string, data []byte) error {
	if err := f.wantFree(ctx, path); err != nil {
		return err
	}
	return f.Put(ctx, path, data)
}

// wantFree fails when there is something.
func (f *fileSystem) wantFree(ctx context.Context, path string) error {
	_, err := f.Status(ctx, path)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	if err == nil {
		err = hbackup.Errorf("look at", "s3://"+f.bucket+"/"+f.root+path, hbackup.KindExists, "the path is taken")
	}
	return err
}

// Save looks for a directory under the path only.
func (f *fileSystem) Save(ctx context.Context, path string, data []byte) error {
	dir, err := f.isDir(ctx, path)
	if err != nil {
		return err
	}
	if dir {
		return hbackup.Errorf("create", "s3://"+f.bucket+"/"+f.root+path, hbackup.KindConflict, "it is a directory")
	}
	return f.Put(ctx, path, data)
}

// Read looks first.
func (f *fileSystem) Read(ctx context.Context, path string) ([]byte, error) {
	if _, err := f.head(ctx, f.root+path); err != nil {
		return nil, err
	}
	return f.Load(ctx, path)
}

// Load reads an object.
func (f *fileSystem) Load(ctx context.Context, path string) (data []byte, err error) {
	key := f.root + path
	out, err := f.client.GetObject(ctx, &sdk.GetObjectInput{Bucket: &f.bucket, Key: &key})
	if err != nil {
		return nil, f.t().fail("get", key, err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	if data, err = io.ReadAll(out.Body); err != nil {
		return nil, f.t().fail("get", key, err)
	}
	return data, nil
}

// List is listStatus.
func (f *fileSystem) List(ctx context.Context, dir string) ([]bench.Status, error) {
	prefix := f.root + dir + "/"
	var all []bench.Status
	pages := sdk.NewListObjectsV2Paginator(f.client, &sdk.ListObjectsV2Input{Bucket: &f.bucket, Prefix: &prefix, Delimiter: aws.String("/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, f.t().fail("list", prefix, err)
		}
		for _, o := range page.Contents {
			if key := aws.ToString(o.Key); key != prefix {
				all = append(all, bench.Status{Path: strings.TrimPrefix(key, f.root), Size: aws.ToInt64(o.Size)})
			}
		}
		for _, p := range page.CommonPrefixes {
			all = append(all, bench.Status{Path: strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), f.root), "/"), Dir: true})
		}
	}
	return all, nil
}

// Walk is listFiles with all levels.
func (f *fileSystem) Walk(ctx context.Context, dir string) ([]bench.Status, error) {
	var all []bench.Status
	err := f.t().each(ctx, f.root+dir+"/", func(key string, size int64) {
		if !strings.HasSuffix(key, "/") {
			all = append(all, bench.Status{Path: strings.TrimPrefix(key, f.root), Size: size})
		}
	})
	return all, err
}

// Mkdirs writes the marker of the directory, unless it is there, and looks that no
// directory above is a file, except below a magic one.
func (f *fileSystem) Mkdirs(ctx context.Context, dir string) error {
	for d := dir; d != ""; d = bench.Parent(d) {
		there, err := f.isDir(ctx, d)
		switch {
		case err != nil || there && d == dir:
			return err
		case there || underMagic(dir):
			return f.Put(ctx, dir+"/", nil)
		}
		if _, err := f.head(ctx, f.root+d); !hbackup.IsKind(err, hbackup.KindNotFound) {
			if err == nil {
				err = hbackup.Errorf("make directory", "s3://"+f.bucket+"/"+f.root+d, hbackup.KindConflict, "it is a file")
			}
			return err
		}
	}
	return f.Put(ctx, dir+"/", nil)
}

// underMagic reports whether a path is inside a magic directory, where S3A keeps
// no directories.
func underMagic(path string) bool {
	_, below, ok := strings.Cut(path, "/__magic")
	return ok && strings.Contains(below, "/")
}

// Merge looks and renames.
func (f *fileSystem) Merge(ctx context.Context, from, to string) error {
	if err := f.wantFree(ctx, to); err != nil {
		return err
	}
	return f.Rename(ctx, from, to)
}

// Rename copies and deletes.
func (f *fileSystem) Rename(ctx context.Context, from, to string) error {
	source, err := f.Status(ctx, from)
	if err != nil {
		return err
	}
	if err := f.wantFree(ctx, to); err != nil {
		return err
	}
	elsewhere := bench.Parent(from) != bench.Parent(to)
	if elsewhere { // the parent must not be a file
		if _, err := f.head(ctx, f.root+bench.Parent(to)); !hbackup.IsKind(err, hbackup.KindNotFound) {
			return errors.Join(err, hbackup.Errorf("rename to", "s3://"+f.bucket+"/"+f.root+to, hbackup.KindConflict, "its directory is a file"))
		}
	}
	if source.Dir {
		err = f.renameDir(ctx, from, to)
	} else if err = f.copy(ctx, from, to); err == nil {
		err = f.deleteOne(ctx, from)
	}
	if err != nil || !elsewhere {
		return err
	}
	return f.keepDir(ctx, bench.Parent(from))
}

func (f *fileSystem) renameDir(ctx context.Context, from, to string) error {
	files, err := f.Walk(ctx, from)
	if err != nil {
		return err
	}
	var gone []string
	for len(files) > 0 {
		n := min(copiesAtOnce, len(files))
		err := engine.Local(ctx, n, engine.Each(files[:n]), func(ctx context.Context, s bench.Status) error {
			return f.copy(ctx, s.Path, to+strings.TrimPrefix(s.Path, from))
		})
		if err != nil {
			return err
		}
		for _, s := range files[:n] {
			gone = append(gone, f.root+s.Path)
		}
		files = files[n:]
		if len(gone) == bulkDelete || len(files) == 0 {
			if err := f.deleteMany(ctx, gone); err != nil {
				return err
			}
			gone = gone[:0]
		}
	}
	return nil
}

// keepDir writes the marker of a directory from which the last file has gone.
func (f *fileSystem) keepDir(ctx context.Context, dir string) error {
	there, err := f.isDir(ctx, dir)
	if err != nil || there {
		return err
	}
	return f.Put(ctx, dir+"/", nil)
}

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
