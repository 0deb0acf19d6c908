package servers_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/e2e/servers"
)

func TestS3KeepsObjectsOverPlainHTTPAndTLS(t *testing.T) {
	for name, tls := range map[string]bool{"http": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			g := servers.ForTest(t).S3(servers.S3Options{TLS: tls, AccessLog: true, Buckets: []string{"backups"}})
			check(t, g.CreateBucket("more"))
			if want := map[bool]string{false: "http://", true: "https://"}[tls]; !strings.HasPrefix(g.Endpoint(), want) {
				t.Errorf("endpoint %s", g.Endpoint())
			}
			client := s3.New(s3.Options{
				BaseEndpoint: aws.String(g.Endpoint()), Region: g.Region, UsePathStyle: true, HTTPClient: g.HTTPClient(),
				Credentials: credentials.NewStaticCredentialsProvider(g.AccessKey, g.SecretKey, ""),
			})
			ctx := t.Context()
			for _, bucket := range []string{"backups", "more"} {
				_, err := client.PutObject(ctx, &s3.PutObjectInput{
					Bucket: &bucket, Key: aws.String("a/b"), Body: strings.NewReader("hello"), IfNoneMatch: aws.String("*")})
				check(t, err)
			}
			_, err := client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: aws.String("backups"), Key: aws.String("a/b"), Body: strings.NewReader("other"), IfNoneMatch: aws.String("*")})
			if err == nil || !strings.Contains(err.Error(), "PreconditionFailed") {
				t.Errorf("create an object that exists: %v", err)
			}
			onDisk, err := os.ReadFile(filepath.Join(g.BucketDir("backups"), "a", "b"))
			check(t, err)
			if string(onDisk) != "hello" {
				t.Errorf("on disk: %q", onDisk)
			}

			endpoint := g.Endpoint()
			check(t, g.Restart(ctx))
			if g.Endpoint() != endpoint {
				t.Errorf("endpoint %s, after a restart %s", endpoint, g.Endpoint())
			}
			got, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("backups"), Key: aws.String("a/b")})
			check(t, err)
			defer got.Body.Close()
			text, err := io.ReadAll(got.Body)
			check(t, err)
			if string(text) != "hello" {
				t.Errorf("read %q", text)
			}
			requests, err := g.Requests()
			check(t, err)
			want := []servers.S3Request{
				{Operation: "PutObject", Bucket: "backups", Key: "a/b", Status: 200, ObjectSize: 5},
				{Operation: "PutObject", Bucket: "more", Key: "a/b", Status: 200, ObjectSize: 5},
				{Operation: "PutObject", Bucket: "backups", Key: "a/b", Status: 412, Code: "PreconditionFailed", ObjectSize: 5},
				{Operation: "GetObject", Bucket: "backups", Key: "a/b", Status: 200},
			}
			for i := range requests {
				if requests[i].Time.IsZero() {
					t.Errorf("request %d has no time", i)
				}
				requests[i].Time = time.Time{}
			}
			if !slices.Equal(requests, want) {
				t.Errorf("requests %+v", requests)
			}
			if counts := servers.CountRequests(requests, nil); counts["PutObject"] != 3 || counts["GetObject"] != 1 {
				t.Errorf("counts %v", counts)
			}
			if tls {
				if _, err := http.Get(g.Endpoint()); err == nil {
					t.Error("a client that does not know the authority was served")
				}
			}
		})
	}
	assertNoChildren(t)
}
