package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hbackup/e2e/servers"
)

const bucket = "backups"

// stage holds the servers and the configuration that the demo plays on.
type stage struct {
	ctx     context.Context
	hbackup string // the binary
	dir     string
	config  string
	prod    *servers.Cluster // the cluster that is backed up
	other   *servers.Cluster // an empty one
	s3      *servers.S3
	seen    int // S3 requests so far
}

// open starts the servers, side by side.
func (s *stage) open() (err error) {
	if s.dir, err = os.MkdirTemp("", "hbackup-demo-"); err != nil {
		return err
	}
	say("Preparing what the servers need (the first time this fetches about 130 MB).")
	if err := servers.Prepare(s.ctx, func(format string, a ...any) { fmt.Printf("    "+format+"\n", a...) }, servers.HBase26); err != nil {
		return err
	}
	say("Starting two HBase clusters, each with an HDFS of its own, and an S3 server.")
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() {
		s.prod, errs[0] = servers.StartCluster(s.ctx, servers.ClusterOptions{Dir: filepath.Join(s.dir, "prod")})
	})
	wg.Go(func() {
		s.other, errs[1] = servers.StartCluster(s.ctx, servers.ClusterOptions{Dir: filepath.Join(s.dir, "other")})
	})
	wg.Go(func() {
		s.s3, errs[2] = servers.StartS3(s.ctx, servers.S3Options{Dir: filepath.Join(s.dir, "s3"), AccessLog: true, Buckets: []string{bucket}})
	})
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("    up after %s: HBase %s at %s, another at %s, S3 at %s\n", took(began), servers.HBase26, s.prod.ZooKeeper(), s.other.ZooKeeper(), s.s3.Endpoint())
	return s.writeConfig()
}

func (s *stage) close() error {
	var errs []error
	if s.prod != nil {
		errs = append(errs, s.prod.Stop())
	}
	if s.other != nil {
		errs = append(errs, s.other.Stop())
	}
	if s.s3 != nil {
		errs = append(errs, s.s3.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// writeConfig writes what an operator would: the clusters, the location, the target.
func (s *stage) writeConfig() error {
	s.config = filepath.Join(s.dir, "hbackup.yaml")
	for name, secret := range map[string]string{"access-key": s.s3.AccessKey, "secret-key": s.s3.SecretKey} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(secret), 0o600); err != nil {
			return err
		}
	}
	cluster := func(c *servers.Cluster) string {
		return fmt.Sprintf("    registry: {zookeeper: [%q]}\n    root: %s\n    user: %s\n    target: s3\n", c.ZooKeeper(), c.Root(), c.HDFS.User())
	}
	text := "version: 1\nclusters:\n  prod:\n" + cluster(s.prod) + "  other:\n" + cluster(s.other) +
		fmt.Sprintf("locations:\n  s3:\n    url: s3://%s/hbase\n    endpoint: %s\n    region: %s\n    path_style: true\n    credentials:\n      access_key: {file: %s}\n      secret_key: {file: %s}\n",
			bucket, s.s3.Endpoint(), s.s3.Region, filepath.Join(s.dir, "access-key"), filepath.Join(s.dir, "secret-key"))
	return os.WriteFile(s.config, []byte(text), 0o600)
}

// run shows a command line, runs it and shows what it printed. It gives what
// came on standard output.
func (s *stage) run(args ...string) (string, error) {
	fmt.Printf("    $ hbackup %s\n", strings.Join(args, " "))
	began := time.Now()
	cmd := exec.CommandContext(s.ctx, s.hbackup, args...)
	cmd.Env = append(os.Environ(), "HBACKUP_CONFIG="+s.config)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	for line := range strings.Lines(out.String()) {
		fmt.Print("      ", line)
	}
	if err != nil {
		return out.String(), fmt.Errorf("hbackup %s: %w\n%s", args[0], err, errOut.String())
	}
	fmt.Printf("    took %s%s\n", took(began), s.requests())
	return out.String(), nil
}

// requests says which S3 requests were made since the last call.
func (s *stage) requests() string {
	all, err := s.s3.Requests()
	if err != nil {
		return ""
	}
	counts := map[string]int{}
	var sent int64
	for _, r := range all[s.seen:] {
		counts[r.Operation]++
		sent += r.ObjectSize
	}
	s.seen = len(all)
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[op], op))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("; %.1f MiB sent; S3 requests: %s", float64(sent)/(1<<20), strings.Join(parts, ", "))
}

func say(format string, a ...any) { fmt.Printf("\n"+format+"\n", a...) }

// quiet runs a command and shows nothing unless it fails.
func (s *stage) quiet(args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, s.hbackup, args...)
	cmd.Env = append(os.Environ(), "HBACKUP_CONFIG="+s.config)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("hbackup %s: %w\n%s", args[0], err, errOut.String())
	}
	return string(out), nil
}
