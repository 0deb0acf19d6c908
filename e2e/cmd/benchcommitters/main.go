// Command benchcommitters runs hbackup bench committer on every kind of store, on
// servers of its own on this machine: versitygw for S3, the strict server of
// package gcstest for Google Cloud Storage, a real HDFS, and a directory.
//
//	make bench-committers
//	go run ./e2e/cmd/benchcommitters -hbackup bin/hbackup -stores s3,hdfs -files 1000
//
// Each store is measured as it is and then with a latency, with fewer files, as
// some protocols take a thousand times longer there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/storage/gcs/gcstest"
)

const bucket = "backups"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchcommitters:", err)
		if hint := hbackup.HintOf(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint:", hint)
		}
		os.Exit(1)
	}
}

// bench is what all runs have in common.
type bench struct {
	hbackup string
	dir     string
	size    string
	files   int // near
	far     int // with the latency
	latency string
}

// store is a location as the configuration describes it, and what the environment
// must have for it.
type store struct {
	location map[string]any
	environ  []string
	isDir    bool // there are no requests that could be delayed
}

// stores start the server of a kind; stop ends it.
var stores = []struct {
	name  string
	start func(context.Context, *bench) (s store, stop func() error, err error)
}{{"s3", startS3}, {"gcs", startGCS}, {"hdfs", startHDFS}, {"file", startFile}}

func run(ctx context.Context) (err error) {
	b := &bench{}
	flag.StringVar(&b.hbackup, "hbackup", "bin/hbackup", "the binary to measure")
	flag.StringVar(&b.size, "size", "64KiB", "size of a file")
	flag.IntVar(&b.files, "files", 10_000, "number of files; 0 leaves the runs without latency out")
	flag.IntVar(&b.far, "far", 1000, "number of files with latency; 0 leaves these runs out")
	flag.StringVar(&b.latency, "latency", "20ms", "latency of a distant store")
	chosen := flag.String("stores", "s3,gcs,hdfs,file", "kinds of stores, separated by commas")
	flag.Parse()
	if b.hbackup, err = filepath.Abs(b.hbackup); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "hbackup-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	names := strings.Split(*chosen, ",")
	for _, s := range stores {
		if !slices.Contains(names, s.name) {
			continue
		}
		if err := b.on(ctx, s.start); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// on starts a store and measures it.
func (b *bench) on(ctx context.Context, start func(context.Context, *bench) (store, func() error, error)) (err error) {
	s, stop, err := start(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if b.files > 0 {
		if err := b.measure(ctx, s, b.files, "0s"); err != nil {
			return err
		}
	}
	if b.far == 0 || s.isDir {
		return nil
	}
	return b.measure(ctx, s, b.far, b.latency)
}

func (b *bench) measure(ctx context.Context, s store, files int, latency string) error {
	config := filepath.Join(b.dir, "hbackup.yaml")
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"version": 1,
		"clusters": map[string]any{"none": map[string]any{ // a configuration needs one; nobody speaks to it
			"registry": map[string]any{"zookeeper": []string{"127.0.0.1"}}, "root": "hdfs://127.0.0.1:1/hbase", "user": "hbase", "target": "store"}},
		"locations": map[string]any{"store": s.location},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.hbackup, "bench", "committer", "--config", config, "--target", "store",
		"--files", strconv.Itoa(files), "--size", b.size, "--latency", latency, "--no-progress")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it clears away what it has made
	cmd.Env = append(os.Environ(), s.environ...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	fmt.Println()
	return cmd.Run()
}

func startS3(ctx context.Context, b *bench) (store, func() error, error) {
	s3, err := servers.StartS3(ctx, servers.S3Options{Buckets: []string{bucket}})
	if err != nil {
		return store{}, nil, err
	}
	return store{
		location: map[string]any{"url": "s3://" + bucket + "/hbase", "endpoint": s3.Endpoint(), "region": s3.Region, "path_style": true,
			"credentials": map[string]any{"access_key": map[string]any{"env": "ACCESS_KEY"}, "secret_key": map[string]any{"env": "SECRET_KEY"}}},
		environ: []string{"ACCESS_KEY=" + s3.AccessKey, "SECRET_KEY=" + s3.SecretKey},
	}, s3.Stop, nil
}

func startGCS(_ context.Context, b *bench) (store, func() error, error) {
	s, err := gcstest.Start("", gcstest.Options{Buckets: []string{bucket}})
	if err != nil {
		return store{}, nil, err
	}
	return store{location: map[string]any{"url": "gs://" + bucket + "/hbase", "endpoint": s.Endpoint()}}, s.Close, nil
}

func startHDFS(ctx context.Context, b *bench) (store, func() error, error) {
	h, err := servers.StartHDFS(ctx, servers.HDFSOptions{})
	if err != nil {
		return store{}, nil, err
	}
	return store{location: map[string]any{"url": h.URI() + "/backups", "user": h.User()}}, h.Stop, nil
}

func startFile(_ context.Context, b *bench) (store, func() error, error) {
	dir := filepath.Join(b.dir, "store")
	return store{location: map[string]any{"url": "file://" + dir}, isDir: true}, func() error { return nil }, os.Mkdir(dir, 0o700)
}
