package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/engine"
	"hbackup/storage"
	"hbackup/storage/s3"
)

// sender puts one file under a name.
type sender func(name string, f *os.File, size int64) error

// copyAll sends every file of the directory, so many at once.
func copyAll(dir string, workers int, send func() (sender, error)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	put, err := send()
	if err != nil {
		return err
	}
	return engine.Local(context.Background(), workers, engine.Each(entries), func(_ context.Context, e os.DirEntry) error {
		return sendFile(dir, e.Name(), put)
	})
}

func sendFile(dir, name string, put sender) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return put(name, f, info.Size())
}

// ours sends with hbackup's store as it is by default. The gateway is found in the
// environment.
func ours(ctx context.Context, prefix string) func() (sender, error) {
	return func() (sender, error) {
		s, err := s3.New(ctx, s3.Config{Bucket: bucket, Prefix: prefix, PathStyle: true})
		return func(name string, f *os.File, size int64) error {
			_, err := s.Put(ctx, storage.Key(name), f, storage.PutOptions{Size: size})
			return err
		}, err
	}
}

// stock sends with the SDK as it comes.
func stock(ctx context.Context, prefix string) func() (sender, error) {
	return func() (sender, error) {
		c, err := config.LoadDefaultConfig(ctx)
		client := awss3.NewFromConfig(c, func(o *awss3.Options) { o.UsePathStyle = true })
		to := bucket
		return func(name string, f *os.File, size int64) error {
			key := prefix + "/" + name
			_, err := client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &to, Key: &key, Body: f})
			return err
		}, err
	}
}
