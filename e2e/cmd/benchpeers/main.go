// Command benchpeers compares hbackup with HBase's own ExportSnapshot: the same
// table from the same HDFS to the same S3 gateway, one after the other on one
// machine, so that the ratios say something wherever it runs.
//
//	make bench-peers
//	go run ./e2e/cmd/benchpeers -hbackup bin/hbackup -rounds 3
//
// Each run is a process of its own, measured from its start to its end: wall
// time, processor time and peak memory as the kernel counts them, and requests
// as the gateway logs them. hbackup takes its snapshot within the measured time,
// ExportSnapshot is given one. hbackup checks the checksums of every HFile block
// and sends a digest of every object; ExportSnapshot is told not to compare
// checksums, which it cannot do between HDFS and S3.
//
// Then Hadoop's own committers are run on S3 and HDFS, warm, beside the protocols
// of hbackup bench committer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"hbackup"
	"hbackup/e2e/servers"
)

const bucket = "backups"

type bench struct {
	hbackup string
	mappers int
	rounds  int
	dir     string
	cluster *servers.Cluster
	s3      *servers.S3
	runs    int // so far; each has a place of its own
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchpeers:", err)
		if hint := hbackup.HintOf(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint:", hint)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	b := &bench{}
	var files, megabytes, small, committed int
	flag.StringVar(&b.hbackup, "hbackup", "bin/hbackup", "the binary to measure")
	flag.IntVar(&b.mappers, "mappers", 4, "map tasks of ExportSnapshot, all at a time")
	flag.IntVar(&b.rounds, "rounds", 3, "runs of each; the table shows medians")
	flag.IntVar(&files, "files", 8, "number of large files; 0 leaves them out")
	flag.IntVar(&megabytes, "megabytes", 256, "size of a large file")
	flag.IntVar(&small, "small", 1000, "number of files of 100 KB, in hundreds; 0 leaves them out")
	flag.IntVar(&committed, "committed", 1000, "number of files of 64 KiB that each committer commits; 0 leaves the committers out")
	flag.Parse()
	if b.hbackup, err = filepath.Abs(b.hbackup); err != nil {
		return err
	}
	if _, err := os.Stat(b.hbackup); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "hbackup-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	// A thousand stores would each take 2 MB for their first cell.
	settings := servers.Settings{"hbase.hregion.memstore.mslab.enabled": "false"}
	if b.cluster, err = servers.StartCluster(ctx, servers.ClusterOptions{HBase: settings}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cluster.Stop()) }()
	if b.s3, err = servers.StartS3(ctx, servers.S3Options{AccessLog: true, Buckets: []string{bucket}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.s3.Stop()) }()
	// Compactions would run beside the measurement.
	if err := b.cluster.SetCompaction(ctx, false); err != nil {
		return err
	}
	if files > 0 {
		if err := b.compare(ctx, fmt.Sprintf("%d files of %d MB", files, megabytes), func(table string) error {
			return b.makeBig(ctx, table, files, megabytes)
		}); err != nil {
			return err
		}
	}
	if small > 0 {
		if err := b.compare(ctx, fmt.Sprintf("%d files of 100 KB", small/100*100), func(table string) error {
			return b.makeSmall(ctx, table, small/100)
		}); err != nil {
			return err
		}
	}
	if committed > 0 {
		return b.committers(ctx, committed)
	}
	return nil
}
