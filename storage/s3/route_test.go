package s3

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/storage"
)

// capture keeps the last request and answers none.
type capture struct{ last *http.Request }

var errCaptured = errors.New("captured")

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.last = r
	return nil, errCaptured
}

// left are the headers that the SDK sends and the store does not: the number of
// the request, and that no compression is wanted, which the transport sees to.
var left = []string{"Amz-Sdk-Invocation-Id", "Accept-Encoding"}

// shape gives what is asked for, without what the time and the key make of it.
func shape(r *http.Request, without ...string) []string {
	out := []string{r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath() + "?" + r.URL.RawQuery}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		switch name {
		case "Authorization", "X-Amz-Date", "User-Agent":
			out = append(out, name)
		default:
			if !slices.Contains(without, name) {
				out = append(out, name+": "+strings.Join(r.Header[name], ","))
			}
		}
	}
	return out
}

// TestRouteSendsWhatTheClientSends compares the requests of the two ways, for
// every setting that changes one.
func TestRouteSendsWhatTheClientSends(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	t.Setenv("CUSTOMER_KEY", key)
	for name, change := range map[string]func(*Config){
		"plain":          func(*Config) {},
		"virtual host":   func(c *Config) { c.PathStyle, c.Endpoint = false, "http://store.example.org:9000" },
		"AWS":            func(c *Config) { c.PathStyle, c.Endpoint, c.Region = false, "", "eu-central-1" },
		"AWS, in China":  func(c *Config) { c.PathStyle, c.Endpoint, c.Region = false, "", "cn-north-1" },
		"dots":           func(c *Config) { c.Bucket, c.Endpoint, c.PathStyle = "with.dots", "", false },
		"endpoint path":  func(c *Config) { c.Endpoint = "http://store.example.org/s3" },
		"signed payload": func(c *Config) { c.SignPayload = true },
		"md5":            func(c *Config) { c.Checksum = ChecksumMD5 },
		"class and key":  func(c *Config) { c.StorageClass, c.Encryption, c.KMSKey = "STANDARD_IA", EncryptionSSEKMS, "k" },
		"tags and payer": func(c *Config) { c.Tags, c.RequesterPays = map[string]string{"a": "b c"}, true },
		"customer's key": func(c *Config) {
			c.Encryption, c.CustomerKey, c.Endpoint = EncryptionSSEC, "env:CUSTOMER_KEY", "https://store.example.org"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := configFor(t, gateway)
			change(&c)
			seen := &capture{}
			c.Wrap = func(http.RoundTripper) http.RoundTripper { return seen }
			c.MaxAttempts = 1
			s := open(t, c)
			for _, object := range []string{"a", "with space/ü+%?#&=;:@$,!'()*~", "a//b/./c", "hbackup.json"} {
				for op, both := range requestsOf(t, s, object) {
					var shapes [2][]string
					for i, ask := range both {
						if err := ask(t.Context()); !errors.Is(err, errCaptured) {
							t.Fatal(op, err)
						}
						shapes[i] = shape(seen.last, left...)
						if i == 0 {
							shapes[i] = shape(seen.last)
						}
					}
					if !slices.Equal(shapes[0], shapes[1]) {
						t.Errorf("%s of %q sends\n%s\nthe client\n%s", op, object, strings.Join(shapes[0], "\n"), strings.Join(shapes[1], "\n"))
					}
				}
			}
		})
	}
}

// requestsOf gives each operation, by the route and by the client.
func requestsOf(t *testing.T, s *Store, key string) map[string][2]func(context.Context) error {
	name := s.full(key)
	data := bytesFor(3 << 20) // so that the store is asked before it is sent
	body := func() io.ReadSeeker { return newReplaced(data) }
	load := func(ctx context.Context) context.Context { return newPayload(data).with(ctx) }
	put := func() *awss3.PutObjectInput {
		p := &put{Store: s, name: name, stamp: "stamp", body: storage.NewBody(t.Context(), bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})}
		p.opts.IfAbsent = true
		in := p.putInput(data)
		in.Body = body()
		return in
	}
	part := func() *awss3.UploadPartInput {
		in := &awss3.UploadPartInput{Bucket: &s.c.Bucket, Key: &name, UploadId: aws.String("an+id/="), PartNumber: aws.Int32(3), Body: body()}
		in.ChecksumCRC64NVME, in.ContentMD5 = s.checksums(7, data)
		return in
	}
	get := &awss3.GetObjectInput{Bucket: &s.c.Bucket, Key: &name, Range: aws.String("bytes=1-2"), IfMatch: aws.String(`"tag"`)}
	head := &awss3.HeadObjectInput{Bucket: &s.c.Bucket, Key: &name, ChecksumMode: "ENABLED"}
	return map[string][2]func(context.Context) error{
		"PutObject": {
			func(ctx context.Context) error { return second(s.ops.putObject.call(load(ctx), put())) },
			func(ctx context.Context) error { return second(s.client.PutObject(load(ctx), put(), s.unsigned())) },
		},
		"UploadPart": {
			func(ctx context.Context) error { return second(s.ops.uploadPart.call(load(ctx), part())) },
			func(ctx context.Context) error { return second(s.client.UploadPart(load(ctx), part(), s.unsigned())) },
		},
		"GetObject": {
			func(ctx context.Context) error { return second(s.ops.getObject.call(ctx, get)) },
			func(ctx context.Context) error { return second(s.client.GetObject(ctx, get, s.wantChecksum())) },
		},
		"HeadObject": {
			func(ctx context.Context) error { return second(s.ops.headObject.call(ctx, head)) },
			func(ctx context.Context) error { return second(s.client.HeadObject(ctx, head)) },
		},
	}
}

func second[T any](_ T, err error) error { return err }

// TestRouteIsTaken holds that the short way is gone where there is one, and that
// buckets which need more than a signature go the long one.
func TestRouteIsTaken(t *testing.T) {
	s := open(t, configFor(t, gateway))
	if s.ops.putObject.way == nil || s.ops.uploadPart.way == nil || s.ops.getObject.way == nil || s.ops.headObject.way == nil {
		t.Error("the SDK's stack is no longer what it was: every call takes the long way")
	}
	c := configFor(t, gateway)
	c.Bucket, c.Endpoint, c.PathStyle = "logs--use1-az4--x-s3", "", false
	if s := open(t, c); s.ops.putObject.way != nil {
		t.Error("a bucket of S3 Express is taken for an ordinary one")
	}
}
