package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"hbackup/e2e/servers"
)

// compare makes a table and copies it with both, in turn.
func (b *bench) compare(ctx context.Context, title string, fill func(table string) error) error {
	table := fmt.Sprintf("bench%d", b.runs)
	if err := fill(table); err != nil {
		return err
	}
	snapshot := table + "_s"
	if err := b.cluster.Snapshot(ctx, table, snapshot); err != nil {
		return err
	}
	var ours, theirs []usage
	for range b.rounds {
		u, err := b.measure(ctx, func(place string) (*os.ProcessState, error) { return b.backup(ctx, table, place) })
		if err != nil {
			return err
		}
		ours = append(ours, u)
		if u, err = b.measure(ctx, func(place string) (*os.ProcessState, error) { return b.export(ctx, snapshot, place) }); err != nil {
			return err
		}
		theirs = append(theirs, u)
	}
	show(title, ours, theirs)
	return b.cluster.Drop(ctx, table)
}

// backup runs hbackup with a location that is empty.
func (b *bench) backup(ctx context.Context, table, place string) (*os.ProcessState, error) {
	config := filepath.Join(b.dir, "hbackup.yaml")
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"version": 1,
		"clusters": map[string]any{"prod": map[string]any{
			"registry": map[string]any{"zookeeper": []string{b.cluster.ZooKeeper()}},
			"root":     b.cluster.Root(), "user": b.cluster.HDFS.User(), "target": "s3",
		}},
		"locations": map[string]any{"s3": b.s3Location(place)},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.hbackup, "backup", "--cluster", "prod", "--tables", table)
	cmd.Env = append(os.Environ(), "HBACKUP_CONFIG="+config, "ACCESS_KEY="+b.s3.AccessKey, "SECRET_KEY="+b.s3.SecretKey)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out.Bytes())
	}
	return cmd.ProcessState, nil
}

// s3Location is a place in the bucket as the configuration describes it.
func (b *bench) s3Location(place string) map[string]any {
	return map[string]any{
		"url": "s3://" + bucket + "/" + place, "endpoint": b.s3.Endpoint(), "region": b.s3.Region, "path_style": true,
		"credentials": map[string]any{"access_key": map[string]any{"env": "ACCESS_KEY"}, "secret_key": map[string]any{"env": "SECRET_KEY"}},
	}
}

// export runs ExportSnapshot with the settings that serve it best here. Its
// default buffer is as large as an HDFS block, one for each file.
func (b *bench) export(ctx context.Context, snapshot, place string) (*os.ProcessState, error) {
	n := strconv.Itoa(b.mappers)
	_, state, err := b.cluster.RunPeer(ctx, b.s3, n, "org.apache.hadoop.hbase.snapshot.ExportSnapshot",
		"-Dsnapshot.export.buffer.size=1048576", "-snapshot", snapshot, "-copy-to", "s3a://"+bucket+"/"+place,
		"-mappers", n, "-no-checksum-verify")
	return state, err
}

// measure runs a contender with a place of its own in the bucket, and empties it.
func (b *bench) measure(ctx context.Context, contender func(place string) (*os.ProcessState, error)) (usage, error) {
	b.runs++
	place := fmt.Sprintf("run%d", b.runs)
	before, err := b.s3.Requests()
	if err != nil {
		return usage{}, err
	}
	clock := start()
	state, err := contender(place)
	if err != nil {
		return usage{}, err
	}
	u := clock.stop(state)
	after, err := b.s3.Requests()
	if err != nil {
		return usage{}, err
	}
	u.requests = len(after) - len(before)
	u.stored, err = sizeOf(filepath.Join(b.s3.BucketDir(bucket), place))
	if err != nil {
		return usage{}, err
	}
	fmt.Fprintf(os.Stderr, "%s %v: %v\n", place, servers.CountRequests(after[len(before):], nil), u)
	return u, os.RemoveAll(filepath.Join(b.s3.BucketDir(bucket), place))
}
