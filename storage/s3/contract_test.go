package s3

import (
	"bytes"
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	testContract(t, gateway, func(c *Config) {})
}

func TestContractTLS(t *testing.T) {
	long(t)
	testContract(t, gatewayTLS, func(c *Config) {})
}

func testContract(t *testing.T, g *servers.S3, change func(*Config), opts ...storetest.Option) {
	c := configFor(t, g)
	change(&c)
	opts = append(opts,
		storetest.PartSize(c.PartSize),
		storetest.NoNesting(), // the gateway keeps objects as files
		storetest.FolderMarker(func(ctx context.Context, s storage.Store, name string) error {
			st := s.(*Store)
			full := st.full(name)
			_, err := st.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &st.c.Bucket, Key: &full, Body: bytes.NewReader(nil)})
			return err
		}))
	storetest.Run(t, func(t *testing.T) storage.Store {
		each := configFor(t, g)
		change(&each)
		s := open(t, each)
		t.Cleanup(func() {
			if left := openUploads(t, s); len(left) > 0 {
				t.Errorf("uploads were left open: %v", left)
			}
		})
		return s
	}, opts...)
}

func TestHolder(t *testing.T) {
	again := func(t *testing.T, s storage.Store) storage.Store { return open(t, s.(*Store).c) }
	storetest.RunHolder(t, func(t *testing.T) storage.Store {
		s := open(t, configFor(t, gateway))
		t.Cleanup(func() {
			if left := openUploads(t, s); len(left) > 0 {
				t.Errorf("uploads were left open: %v", left)
			}
		})
		return s
	}, again, storetest.PartSize(minPartSize))
}
