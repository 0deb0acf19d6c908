// Package docs runs what the documentation tells people to type.
package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	cli.Cleanup()
	os.Exit(code)
}

// block gives the first fenced block of a language in a file.
func block(t *testing.T, file, language string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```"+language+"\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return text
}

// TestFirstUse takes the configuration and the commands of the README's first
// use as they stand, with the addresses of real servers put in, and runs them.
func TestFirstUse(t *testing.T) {
	const readme = "../../README.md"
	x := servers.ForTest(t)
	c := x.Cluster(servers.ClusterOptions{})
	s3 := x.S3(servers.S3Options{Buckets: []string{"my-bucket"}})

	config := block(t, readme, "yaml")
	for from, to := range map[string]string{
		"[zk1:2181, zk2:2181, zk3:2181]": "[" + c.ZooKeeper() + "]",
		"hdfs://nn1:8020/hbase":          c.Root(),
		"user: hbase":                    "user: " + c.HDFS.User(),
		"region: eu-central-1":           fmt.Sprintf("region: %s, endpoint: %q, path_style: true", s3.Region, s3.Endpoint()),
	} {
		if !strings.Contains(config, from) {
			t.Fatalf("the README's configuration has no %q", from)
		}
		config = strings.ReplaceAll(config, from, to)
	}
	path := filepath.Join(t.TempDir(), "hbackup.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"ns:orders", "ns:customers"} {
		if err := c.CreateTable(t.Context(), servers.TableSpec{Name: table, Families: servers.Families("f")}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(t.Context(), table, servers.LoadSpec{Seed: 1, Rows: 100, ValueBytes: 20}); err != nil {
			t.Fatal(err)
		}
	}

	environ := append(os.Environ(), s3.Environment()...)
	environ = append(environ, "HBACKUP_CONFIG="+path)
	id, ran := "ID", 0
	for line := range strings.Lines(block(t, readme, "sh")) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] != "hbackup" {
			t.Fatalf("the README says %q", line)
		}
		for i, w := range words {
			if w == "ID" {
				words[i] = id
			}
		}
		cmd := exec.CommandContext(t.Context(), cli.Binary(t), words[1:]...)
		cmd.Env = environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
		ran++
		if words[1] == "backup" {
			id = newest(t, environ)
		}
	}
	if ran < 6 {
		t.Errorf("only %d commands were run", ran)
	}
	want, err := c.Dump(t.Context(), "ns:orders", false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Dump(t.Context(), "ns:orders_restored", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.DiffDumps(want, got); err != nil {
		t.Error(err)
	}
}

func newest(t *testing.T, environ []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cli.Binary(t), "list", "-o", "json")
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list: %v\n%s", err, out)
	}
	var doc struct {
		Backups []struct {
			ID string `json:"backup"`
		} `json:"backups"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Backups) == 0 {
		t.Fatalf("list: %v\n%s", err, out)
	}
	return doc.Backups[len(doc.Backups)-1].ID
}

// TestDemo runs the demonstration to its end.
func TestDemo(t *testing.T) {
	servers.ForTest(t)
	bin := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-o", bin, "hbackup/e2e/cmd/demo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-hbackup", cli.Binary(t))
	cmd.Dir = "../.."
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"Everything compared equal", "MiB sent", "S3 requests", "orders_restored on prod: all", "orders_restored on other: all"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out.String())
		}
	}
}
