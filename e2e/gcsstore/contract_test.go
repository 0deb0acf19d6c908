// Package gcsstore tests hbackup/storage/gcs against a server that others wrote.
package gcsstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/gcs"
	"hbackup/storage/storetest"
)

const bucket = "backups"

var server *servers.GCS

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if server, err = servers.StartGCS(context.Background(), servers.GCSOptions{Buckets: []string{bucket}}); err != nil {
		return 1, err
	}
	defer server.Stop()
	return m.Run(), nil
}

const chunk = 256 << 10

// open gives a store at a prefix of the test's own.
func open(t *testing.T) storage.Store { return openWith(t, chunk) }

func openWith(t *testing.T, chunk int64) storage.Store {
	t.Helper()
	prefix := path.Base(path.Dir(t.TempDir())) + "/hbase"
	s, err := gcs.New(t.Context(), gcs.Config{Bucket: bucket, Prefix: prefix, Endpoint: server.Endpoint(), ChunkSize: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	marker := storetest.FolderMarker(func(ctx context.Context, s storage.Store, name string) error {
		return server.CreateEmpty(ctx, bucket, strings.TrimPrefix(string(s.Location())+"/"+name, "gs://"+bucket+"/"))
	})
	// The server is slow with many objects and with many chunks.
	storetest.Run(t, open, storetest.PartSize(chunk), storetest.Keys(1200), storetest.LargeSize(16<<20), marker)
}

// TestLargeObject puts one that is large enough to be sent in parts. This server
// offers no multipart uploads, so that it goes in chunks after all.
func TestLargeObject(t *testing.T) {
	const chunk = 5 << 20
	s := openWith(t, chunk)
	defer s.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), chunk+1)
	obj, err := storage.PutBytes(t.Context(), s, "a/key", data, true)
	if err != nil || obj.Digest != storage.DigestOf(data) {
		t.Fatalf("Put gives %+v, %v", obj, err)
	}
	got, _, err := storage.ReadAll(t.Context(), s, "a/key", int64(len(data)))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("Get gives %d bytes, %v; want %d", len(got), err, len(data))
	}
	if _, err := storage.PutBytes(t.Context(), s, "a/key", data, true); !hbackup.IsKind(err, hbackup.KindExists) {
		t.Errorf("the second put: %v", err)
	}
}
