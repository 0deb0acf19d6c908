package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/e2e/servers"
	"hbackup/storage"
)

const benchSize = 256 << 20

// cpu gives the processor time of this process; the gateway is another one.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perCPU runs the benchmark and reports megabytes per second of processor time.
func perCPU(b *testing.B, size int64, run func()) {
	b.SetBytes(size)
	run() // connections and buffers
	before := cpu()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpu()-before).Seconds(), "MB/CPU-s")
}

func benchFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(path, bytesFor(benchSize), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func benchPut(b *testing.B, g *servers.S3, partSize int64) {
	c := configFor(b, g)
	c.PartSize = partSize
	s := open(b, c)
	path := benchFile(b)
	n := 0
	perCPU(b, benchSize, func() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		n++
		if _, err := s.Put(b.Context(), storage.Key(fmt.Sprintf("k%d", n%2)), f, storage.PutOptions{Size: benchSize}); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkPutLarge sends a file, as a backup does; BenchmarkBarePut is the
// yardstick: net/http sending the same bytes from memory, with no digest.
// BenchmarkBarePutFile is net/http with the file itself for a body; over http the
// kernel then sends it without handing it out.
func BenchmarkPutLarge(b *testing.B)    { benchPut(b, gateway, DefaultPartSize) }
func BenchmarkPutLargeTLS(b *testing.B) { benchPut(b, gatewayTLS, DefaultPartSize) }
func BenchmarkBarePut(b *testing.B)     { benchBare(b, gateway, fromMemory(b)) }
func BenchmarkBarePutTLS(b *testing.B)  { benchBare(b, gatewayTLS, fromMemory(b)) }

func BenchmarkBarePutFile(b *testing.B)    { benchBare(b, gateway, fromFile(b)) }
func BenchmarkBarePutFileTLS(b *testing.B) { benchBare(b, gatewayTLS, fromFile(b)) }

func fromMemory(b *testing.B) func() io.Reader {
	data := bytesFor(benchSize)
	return func() io.Reader { return bytes.NewReader(data) }
}

func fromFile(b *testing.B) func() io.Reader {
	path := benchFile(b)
	return func() io.Reader {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		return f // the transport closes it
	}
}

func benchBare(b *testing.B, g *servers.S3, body func() io.Reader) {
	s := open(b, configFor(b, g))
	client := g.HTTPClient()
	n := 0
	perCPU(b, benchSize, func() {
		n++
		req, err := http.NewRequestWithContext(b.Context(), "PUT", fmt.Sprintf("%s/%s/%s", g.Endpoint(), bucket, s.full(fmt.Sprintf("k%d", n%2))), body())
		if err != nil {
			b.Fatal(err)
		}
		req.ContentLength = benchSize
		sign(b, req)
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			b.Fatalf("%s %s", resp.Status, text)
		}
	})
}

func sign(b *testing.B, req *http.Request) {
	req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	key := aws.Credentials{AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey}
	if err := v4.NewSigner().SignHTTP(context.Background(), key, req, "UNSIGNED-PAYLOAD", "s3", gateway.Region, time.Now()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGetLarge reads an object, checked; BenchmarkBareGet does it unchecked.
func BenchmarkGetLarge(b *testing.B) {
	s := open(b, configFor(b, gateway))
	if err := putBytes(b, s, "k", bytesFor(benchSize), false); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	perCPU(b, benchSize, func() {
		r, _, err := s.Get(b.Context(), "k", storage.Range{})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buf); n != benchSize || err != nil {
			b.Fatal(n, err)
		}
	})
}

func BenchmarkBareGet(b *testing.B) {
	s := open(b, configFor(b, gateway))
	if err := putBytes(b, s, "k", bytesFor(benchSize), false); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	perCPU(b, benchSize, func() {
		req, err := http.NewRequestWithContext(b.Context(), "GET", fmt.Sprintf("%s/%s/%s", gateway.Endpoint(), bucket, s.full("k")), nil)
		if err != nil {
			b.Fatal(err)
		}
		sign(b, req)
		resp, err := gateway.HTTPClient().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf); n != benchSize || err != nil {
			b.Fatal(n, err)
		}
	})
}

const millionKeys = 1_000_000

// perKey runs a listing of a million keys and reports keys per second of
// processor time; the server is another process.
func perKey(b *testing.B, list func() int) {
	before := cpu()
	for b.Loop() {
		if n := list(); n != millionKeys {
			b.Fatalf("%d keys", n)
		}
	}
	b.ReportMetric(float64(b.N)*millionKeys/(cpu()-before).Seconds(), "keys/CPU-s")
}

// BenchmarkListMillion lists a million keys; BenchmarkListMillionSDK does it with
// the paginator of the SDK.
func BenchmarkListMillion(b *testing.B) {
	s := startListServer(b, millionKeys)
	perKey(b, func() (n int) {
		for obj, err := range s.List(b.Context(), "", storage.ListOptions{}) {
			if err != nil || obj.Size != int64(1000+n) {
				b.Fatal(obj, err)
			}
			n++
		}
		return n
	})
}

func BenchmarkListMillionSDK(b *testing.B) {
	s := startListServer(b, millionKeys)
	prefix := s.full("")
	perKey(b, func() (n int) {
		pages := awss3.NewListObjectsV2Paginator(s.client, &awss3.ListObjectsV2Input{Bucket: &s.c.Bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			for _, obj := range page.Contents {
				if *obj.Size != int64(1000+n) {
					b.Fatal(*obj.Key)
				}
				n++
			}
		}
		return n
	})
}

// BenchmarkPutSmall puts objects of 1 KiB over 16 connections; BenchmarkPutSmallSDK
// does it with the SDK as it comes, and BenchmarkBarePutSmall with net/http and
// nothing but a signature.
func BenchmarkPutSmall(b *testing.B) {
	s := open(b, configFor(b, gateway))
	benchSmall(b, func(key string, data []byte) error {
		_, err := s.Put(b.Context(), storage.Key(key), bytes.NewReader(data), storage.PutOptions{Size: smallSize})
		return err
	})
}

func BenchmarkPutSmallSDK(b *testing.B) {
	c := configFor(b, gateway)
	to := c.Bucket
	client := awss3.New(awss3.Options{
		Region: gateway.Region, BaseEndpoint: aws.String(gateway.Endpoint()), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(gateway.AccessKey, gateway.SecretKey, ""),
	})
	benchSmall(b, func(key string, data []byte) error {
		key = c.Prefix + "/" + key
		_, err := client.PutObject(b.Context(), &awss3.PutObjectInput{Bucket: &to, Key: &key, Body: bytes.NewReader(data)})
		return err
	})
}

func BenchmarkBarePutSmall(b *testing.B) {
	c := configFor(b, gateway)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: smallAtOnce}}
	benchSmall(b, func(key string, data []byte) error {
		req, err := http.NewRequestWithContext(b.Context(), "PUT", gateway.Endpoint()+"/"+bucket+"/"+c.Prefix+"/"+key, bytes.NewReader(data))
		if err != nil {
			return err
		}
		sign(b, req)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			return errors.New(resp.Status)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	})
}

const (
	smallSize   = 1 << 10
	smallAtOnce = 16
)

// benchSmall reports puts per second of processor time.
func benchSmall(b *testing.B, put func(key string, data []byte) error) {
	data := bytesFor(smallSize)
	before := cpu()
	b.SetParallelism(smallAtOnce / runtime.GOMAXPROCS(0))
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := put(fmt.Sprintf("small/%d", n.Add(1)), data); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/(cpu()-before).Seconds(), "puts/CPU-s")
}
