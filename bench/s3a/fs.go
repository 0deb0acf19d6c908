package s3a

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"hbackup"
	"hbackup/bench"
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
