package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hbackup/e2e/servers"
)

// What the committers are given.
const (
	committerBytes = 64 << 10
	committerTasks = 16
)

// committers runs Hadoop's own committers on S3 and HDFS, and the benchmark's
// protocols after them, ours among them.
func (b *bench) committers(ctx context.Context, files int) error {
	for _, on := range []struct {
		name     string
		s3       *servers.S3
		output   string
		kinds    []string
		location map[string]any
	}{
		{"S3", b.s3, "s3a://" + bucket + "/hadoop/", []string{"v1", "v2", "magic", "manifest"}, b.s3Location("modelled")},
		{"HDFS", nil, b.cluster.HDFS.URI() + "/hadoop/", []string{"v1", "v2", "manifest"},
			map[string]any{"url": b.cluster.HDFS.URI() + "/modelled", "user": b.cluster.HDFS.User()}},
	} {
		modelled, err := b.modelled(ctx, on.location, files)
		if err != nil {
			return err
		}
		fmt.Printf("\n| %s, %d files of %d KiB, %d tasks | Hadoop: commit s | requests | modelled: commit s | requests |\n|---|---|---|---|---|\n",
			on.name, files, committerBytes>>10, committerTasks)
		for _, kind := range on.kinds {
			// Two rounds warm the JVM up.
			rounds, err := b.cluster.RunCommitter(ctx, on.s3, servers.CommitterJob{
				Kind: kind, Output: on.output + kind, Files: files, Bytes: committerBytes, Tasks: committerTasks, Rounds: b.rounds + 2})
			if err != nil {
				return err
			}
			seconds, requests := middleRound(rounds[2:])
			m := modelled[kind]
			fmt.Printf("| %s | %.3f | %s | %.3f | %d |\n", kind, seconds, requests, m.Seconds, m.Requests)
		}
		ours := modelled["hbackup"]
		fmt.Printf("| hbackup | | | %.3f | %d |\n", ours.Seconds, ours.Requests)
	}
	return nil
}

// middleRound gives the median of the seconds of both commits, and what they
// asked for.
func middleRound(rounds []servers.CommitterRound) (seconds float64, requests string) {
	slices.SortFunc(rounds, func(a, b servers.CommitterRound) int {
		return int(1e6 * (a.TaskCommit + a.JobCommit - b.TaskCommit - b.JobCommit))
	})
	r := rounds[len(rounds)/2]
	if n := r.TaskRequests + r.JobRequests; n > 0 {
		requests = strconv.FormatInt(n, 10)
	}
	return r.TaskCommit + r.JobCommit, requests
}

// commit is a protocol's commit as hbackup bench committer reports it.
type commit struct {
	Seconds  float64
	Requests int64
}

func (b *bench) modelled(ctx context.Context, location map[string]any, files int) (map[string]commit, error) {
	config := filepath.Join(b.dir, "committers.yaml")
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"version": 1,
		"clusters": map[string]any{"prod": map[string]any{
			"registry": map[string]any{"zookeeper": []string{b.cluster.ZooKeeper()}}, "root": b.cluster.Root(), "user": b.cluster.HDFS.User(), "target": "store"}},
		"locations": map[string]any{"store": location},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.hbackup, "bench", "committer", "--config", config, "--target", "store", "--files", strconv.Itoa(files),
		"--size", strconv.Itoa(committerBytes), "--tasks", strconv.Itoa(committerTasks), "--parallel", strconv.Itoa(committerTasks), "-o", "json", "--quiet")
	cmd.Env = append(os.Environ(), "ACCESS_KEY="+b.s3.AccessKey, "SECRET_KEY="+b.s3.SecretKey)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, problems.Bytes())
	}
	var doc struct {
		Protocols []struct {
			Protocol string
			Commit   *commit
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		return nil, err
	}
	all := map[string]commit{}
	for _, p := range doc.Protocols {
		if p.Commit != nil {
			all[p.Protocol] = *p.Commit
		}
	}
	return all, nil
}
