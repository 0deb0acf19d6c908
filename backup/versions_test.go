package backup_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/lease"
	"hbackup/storage/s3"
)

// TestKilledInAVersionedBucket leaves it to hbackup how to commit in a bucket that
// keeps every version. It chooses uploads. A process that dies in the middle of them
// leaves nothing that can be seen, and the next one goes on to an image that verifies,
// whose files have one version each.
func TestKilledInAVersionedBucket(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for leases to end; run without -short")
	}
	g, err := servers.StartS3(t.Context(), servers.S3Options{Versions: true, Buckets: []string{"backups"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Stop() })
	t.Setenv("TEST_ACCESS", g.AccessKey)
	t.Setenv("TEST_SECRET", g.SecretKey)
	open := func(prefix string) *s3.Store {
		s, err := s3.New(t.Context(), s3.Config{Bucket: "backups", Prefix: prefix, Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
			Credentials: s3.Credentials{AccessKey: "env:TEST_ACCESS", SecretKey: "env:TEST_SECRET"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	_, err = open("").Client().PutBucketVersioning(t.Context(), &awss3.PutBucketVersioningInput{Bucket: aws.String("backups"),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	if err != nil {
		t.Fatal(err)
	}
	type point struct {
		prefix, kind string
		n            int // the n-th call of the kind never comes
	}
	points := []point{{"opened", "open", 3}, {"filled", "fill", 2}, {"finishing", "finish", 2}}
	worlds := map[string]*world{}
	for _, p := range points {
		w := newWorld(t)
		worlds[p.prefix] = w
		first := newDyingOf(open(p.prefix), func() storage.Store { return open(p.prefix) }, nth(p.n, p.kind, ""))
		if !w.kill(t, first, "r", backup.Options{Files: 1, LeaseTTL: lease.MinTTL}) {
			t.Fatalf("it was not killed at %+v", p)
		}
		if p.kind != "finish" {
			if n := archived(t, w.store); n != 0 {
				t.Errorf("%+v: %d store files can be seen before the commit", p, n)
			}
		}
	}
	for _, p := range points {
		w := worlds[p.prefix]
		for range 2 { // the second time there is nothing to do
			r, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
				backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Files: 1})
			if err != nil || r.State != catalog.StateComplete || r.Committer != string(committer.ProtocolDeferred) {
				t.Fatalf("%+v, again: %+v, %v", p, r, err)
			}
		}
		if n := len(w.images(t)); n != 1 {
			t.Errorf("%+v: %d images", p, n)
		}
		client := open("").Client()
		versions, err := client.ListObjectVersions(t.Context(), &awss3.ListObjectVersionsInput{Bucket: aws.String("backups"), Prefix: aws.String(p.prefix + "/prod/archive/")})
		if err != nil || len(versions.Versions) != len(w.tables[orders].files) || len(versions.DeleteMarkers) > 0 {
			t.Errorf("%+v: %d versions and %d markers of %d store files, %v", p, len(versions.Versions), len(versions.DeleteMarkers), len(w.tables[orders].files), err)
		}
		uploads, err := client.ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: aws.String("backups"), Prefix: aws.String(p.prefix + "/")})
		if err != nil || len(uploads.Uploads) > 0 {
			t.Errorf("%+v: %d uploads are left, %v", p, len(uploads.Uploads), err)
		}
	}
}

// archived counts the store files that can be seen.
func archived(t *testing.T, s storage.Store) (n int) {
	t.Helper()
	for obj, err := range s.List(t.Context(), "prod/archive/", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(obj.Key), "/") {
			n++
		}
	}
	return n
}
