// Package cli runs the hbackup binary in tests as an operator would: with a
// configuration file, arguments and an exit code.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hbackup/e2e/servers"
)

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hbackup-bin-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "hbackup")
	cmd := exec.Command("go", "build", "-tags", "failpoints", "-o", out, "hbackup/cmd/hbackup")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, msg)
	}
	return out, nil
})

// Binary builds hbackup, once per process, so that it can be killed at named
// steps (HBACKUP_FAILPOINT).
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Cleanup removes the binary; call it at the end of TestMain.
func Cleanup() {
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
}

// Config is a configuration file in the making.
type Config struct {
	Clusters  map[string]Cluster
	Locations map[string]map[string]any
	Extra     map[string]any // further top-level keys
}

// Cluster is one cluster of a configuration.
type Cluster struct {
	ZooKeeper string
	Masters   string
	Root      string
	User      string
	Target    string
	History   []string
	Extra     map[string]any
}

// Of describes a running cluster.
func Of(c *servers.Cluster, target string, history ...string) Cluster {
	user := ""
	if c.HDFS != nil {
		user = c.HDFS.User()
	}
	return Cluster{ZooKeeper: c.ZooKeeper(), Root: c.Root(), User: user, Target: target, History: history}
}

// S3 describes a location in a bucket of the gateway. The keys' values come from
// the environment that Tool sets.
func S3(s *servers.S3, bucket, prefix string) map[string]any {
	m := map[string]any{
		"url": "s3://" + strings.TrimSuffix(bucket+"/"+prefix, "/"), "endpoint": s.Endpoint(), "region": s.Region, "path_style": true,
		"credentials": map[string]any{
			"access_key": map[string]any{"env": "TEST_ACCESS_KEY"},
			"secret_key": map[string]any{"env": "TEST_SECRET_KEY"},
		},
	}
	if ca := s.CAFile(); strings.HasPrefix(s.Endpoint(), "https:") {
		m["ca_file"] = ca
	}
	return m
}

// GCS describes a location in a bucket of a stand-in for Google Cloud Storage.
func GCS(endpoint, bucket, prefix string) map[string]any {
	return map[string]any{"url": "gs://" + strings.TrimSuffix(bucket+"/"+prefix, "/"), "endpoint": endpoint}
}

// HDFS describes a location in a directory of HDFS, which hbackup makes itself.
func HDFS(h *servers.HDFS, path string) map[string]any {
	return map[string]any{"url": h.URI() + path, "user": h.User(), "replication": 1}
}

// Dir makes a directory and describes the location in it. hbackup does not make
// the directory itself: an unmounted disk must not be written beside.
func Dir(t testing.TB, path string) map[string]any {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"url": "file://" + path}
}

// Tool is hbackup with one configuration.
type Tool struct {
	binary string
	config string
	Env    []string
}

// New writes the configuration and gives the tool that uses it. JSON is YAML.
func New(t testing.TB, c Config, env ...string) *Tool {
	t.Helper()
	doc := map[string]any{"version": 1}
	clusters := map[string]any{}
	for name, cl := range c.Clusters {
		m := map[string]any{"root": cl.Root, "target": cl.Target}
		registry := map[string]any{}
		if cl.ZooKeeper != "" {
			registry["zookeeper"] = []string{cl.ZooKeeper}
		}
		if cl.Masters != "" {
			registry["masters"] = []string{cl.Masters}
		}
		m["registry"] = registry
		if cl.User != "" {
			m["user"] = cl.User
		}
		if len(cl.History) > 0 {
			m["history"] = cl.History
		}
		maps.Copy(m, cl.Extra)
		clusters[name] = m
	}
	doc["clusters"], doc["locations"] = clusters, c.Locations
	maps.Copy(doc, c.Extra)
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hbackup.yaml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return &Tool{binary: Binary(t), config: path, Env: env}
}

// Keys gives the environment in which locations made by S3 find their keys.
func Keys(s *servers.S3) []string {
	return []string{"TEST_ACCESS_KEY=" + s.AccessKey, "TEST_SECRET_KEY=" + s.SecretKey}
}

// With gives the same tool with more environment.
func (x *Tool) With(env ...string) *Tool {
	y := *x
	y.Env = append(slices.Clone(x.Env), env...)
	return &y
}

// Result is what a run of the binary came to.
type Result struct {
	Args   []string
	Stdout string
	Stderr string
	Code   int  // exit code; -1 when a signal ended it
	Killed bool // by a signal
}

// String shows everything, for failure messages.
func (r Result) String() string {
	return fmt.Sprintf("hbackup %s\nexit code %d (killed: %v)\nstdout:\n%s\nstderr:\n%s", strings.Join(r.Args, " "), r.Code, r.Killed, r.Stdout, r.Stderr)
}

// Run runs the binary with the arguments to its end.
func (x *Tool) Run(ctx context.Context, args ...string) Result {
	cmd := exec.CommandContext(ctx, x.binary, args...)
	cmd.Env = append(append(os.Environ(), "HBACKUP_CONFIG="+x.config), x.Env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	r := Result{Args: args, Stdout: out.String(), Stderr: errOut.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
		r.Killed = r.Code == -1
	case err != nil:
		r.Code, r.Stderr = -1, r.Stderr+err.Error()
	}
	return r
}

// OK runs the binary and fails the test unless it exits 0. It gives the output.
func (x *Tool) OK(t testing.TB, args ...string) string {
	t.Helper()
	r := x.Run(t.Context(), args...)
	if r.Code != 0 {
		t.Fatalf("%s", r)
	}
	return r.Stdout
}

// JSON runs the binary with -o json and decodes what it prints.
func (x *Tool) JSON(t testing.TB, into any, args ...string) {
	t.Helper()
	out := x.OK(t, append([]string{"-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("hbackup %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Backup backs tables up and gives the id of the backup.
func (x *Tool) Backup(t testing.TB, cluster string, tables ...string) string {
	t.Helper()
	var doc struct {
		ID    string `json:"backup"`
		State string `json:"state"`
	}
	x.JSON(t, &doc, "backup", "--cluster", cluster, "--tables", strings.Join(tables, ","))
	if doc.ID == "" || doc.State != "complete" {
		t.Fatalf("backup gives %+v", doc)
	}
	return doc.ID
}
