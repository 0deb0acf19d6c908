// Command servers starts a throw-away HBase cluster and an S3 gateway on this
// machine, prints where they are and keeps them up until it is interrupted.
//
//	go run ./e2e/cmd/servers                    HBase 2.6 on HDFS, and S3 with the bucket "backups"
//	go run ./e2e/cmd/servers -hbase 2.4 -s3=false
//	go run ./e2e/cmd/servers prepare            only fetch and build what is needed, for all versions
//	go run ./e2e/cmd/servers prepare 2.6        … for this one
//	go run ./e2e/cmd/servers prepare -peers     … for the main version, and 650 MB so that HBase's own tools can use S3
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		if hint := hbackup.HintOf(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint:", hint)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("servers", flag.ExitOnError)
	version := flags.String("hbase", string(servers.HBase26), fmt.Sprintf("version of HBase, one of %v", servers.Versions()))
	dir := flags.String("dir", "", "directory for data, configuration and logs, kept at the end (default: a temporary one)")
	regionServers := flags.Int("region-servers", 1, "number of region servers")
	local := flags.Bool("local-root", false, "HBase on a local directory, without HDFS")
	nameNode := flags.Int("namenode-port", 0, "port of the name node (0: any free one)")
	zooKeeper := flags.Int("zookeeper-port", 0, "port of ZooKeeper (0: any free one)")
	s3 := flags.Bool("s3", true, "start an S3 gateway")
	s3Port := flags.Int("s3-port", 0, "port of the S3 gateway (0: any free one)")
	tls := flags.Bool("s3-tls", false, "S3 over TLS")
	if len(args) > 0 && args[0] == "prepare" {
		return prepare(ctx, args[1:])
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return hbackup.Errorf("read the command line", "", hbackup.KindUsage, "unexpected %q", flags.Args())
	}

	started := time.Now()
	cluster, err := servers.StartCluster(ctx, servers.ClusterOptions{
		Version: servers.Version(*version), Dir: *dir, RegionServers: *regionServers, LocalRoot: *local,
		NameNodePort: *nameNode, ZooKeeperPort: *zooKeeper})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	show("HBase", string(cluster.Version()), "root directory", cluster.Root(), "ZooKeeper", cluster.ZooKeeper(), "master", cluster.Master(),
		"driver", "http://"+cluster.Driver(), "configuration", cluster.ConfDir(), "log", cluster.LogFile())
	if h := cluster.HDFS; h != nil {
		show("HDFS", h.URI(), "user", h.User(), "HTTP", "http://"+h.HTTPAddress(), "log", h.LogFile())
	}
	if *s3 {
		gateway, err := servers.StartS3(ctx, servers.S3Options{Dir: below(*dir, "s3"), Port: *s3Port, TLS: *tls, AccessLog: true, Buckets: []string{"backups"}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gateway.Stop()) }()
		show("S3", gateway.Endpoint(), "bucket", "backups", "environment", strings.Join(gateway.Environment(), " "),
			"objects", gateway.BucketDir("backups"), "access log", gateway.AccessLogFile())
	}
	fmt.Printf("ready after %.1f s; interrupt to stop\n", time.Since(started).Seconds())
	<-ctx.Done()
	return nil
}

// prepare fetches and builds for the given versions, or for all.
func prepare(ctx context.Context, args []string) error {
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	if len(args) == 1 && args[0] == "-peers" {
		return errors.Join(servers.Prepare(ctx, say, servers.HBase26), servers.PreparePeers(ctx, say))
	}
	versions := servers.Versions()
	if len(args) > 0 {
		versions = nil
		for _, a := range args {
			versions = append(versions, servers.Version(a))
		}
	}
	return servers.Prepare(ctx, say, versions...)
}

// below gives a directory in dir, or "" for a temporary one.
func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// show prints a title and the pairs below it.
func show(title, value string, pairs ...string) {
	fmt.Printf("%-16s%s\n", title, value)
	for i := 0; i < len(pairs); i += 2 {
		fmt.Printf("  %-15s%s\n", pairs[i], pairs[i+1])
	}
}
