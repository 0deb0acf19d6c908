package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenConfig is what the golden tests run with.
const goldenConfig = `version: 1
clusters:
  prod:
    registry: {zookeeper: [zk1, zk2]}
    root: hdfs://nn1:8020/hbase
    user: hbase
    target: main
    history: [old]
  dr:
    registry: {masters: [m1, m2]}
    root: hdfs://dr:8020/hbase
    user: hbase
    target: main
locations:
  main:
    url: s3://bucket/prefix
    credentials: {access_key: {env: TEST_KEY}, secret_key: {env: TEST_SECRET}}
  old: {url: "file:///srv/backup"}
sets:
  billing: {include: [customers, "ns:*"], exclude: ["ns:tmp_*"]}
`

// invoke runs hbackup inside this process.
func invoke(t *testing.T, fakeName string, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hbackup.yaml")
	if err := os.WriteFile(file, []byte(goldenConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_KEY", "access-key-value")
	t.Setenv("TEST_SECRET", "hunter2hunter2")
	var out, errOut bytes.Buffer
	p := &program{stdout: &out, stderr: &errOut, environ: []string{}, now: fakeNow, connect: fakes[fakeName].connect, searchPaths: []string{file}}
	code = p.run(t.Context(), args)
	clean := strings.NewReplacer(dir, "/etc/hbackup")
	return clean.Replace(out.String()), clean.Replace(errOut.String()), code
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	path = filepath.Join("testdata", path)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to make it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update if that is meant)\ngot\n%s\nwant\n%s", path, got, want)
	}
}

// The three forms of every verb's result are a promise to people and programs.
func TestResults(t *testing.T) {
	id, image := string(fakeID), string(fakeID.Image(0))
	for _, c := range []struct {
		name string
		fake string
		code exitCode
		args []string
	}{
		{"backup", "good", exitDone, []string{"backup", "--cluster", "prod", "--tables", "ns:orders,customers", "--request-id", "r1"}},
		{"backup-done", "done", exitDone, []string{"backup", "--cluster", "prod", "--tables", "ns:orders", "--request-id", "r1"}},
		{"backup-partial", "partial", exitPartial, []string{"backup", "--cluster", "prod", "--tables", "ns:orders,customers", "--request-id", "r1"}},
		{"backup-set", "good", exitDone, []string{"backup", "--cluster", "prod", "--table-set", "billing", "--request-id", "r1"}},
		{"list", "good", exitPartial, []string{"list", "--cluster", "prod"}},
		{"list-filtered", "good", exitDone, []string{"list", "--cluster", "prod", "--state", "partial,complete", "--table", "ns:orders", "--since", "2026-11-30T00:00:00+01:00", "--until", "2026-12-01T00:00:00Z"}},
		{"list-unreachable", "damaged", exitPartial, []string{"list", "--cluster", "prod"}},
		{"list-all", "damaged", exitPartial, []string{"list", "--since", "2026-11-01T00:00:00Z"}},
		{"list-empty", "empty", exitDone, []string{"list"}},
		{"describe", "partial", exitDone, []string{"describe", id}},
		{"describe-image", "good", exitDone, []string{"describe", image}},
		{"describe-shared", "good", exitDone, []string{"describe", id, "--shared"}},
		{"describe-running", "running", exitDone, []string{"describe", id}},
		{"info", "well", exitDone, []string{"info", "--cluster", "prod"}},
		{"info-late", "well", exitPartial, []string{"info", "--cluster", "prod", "--set", "clusters.prod.max_age=1h"}},
		{"info-not-well", "good", exitPartial, []string{"info", "--cluster", "prod", "--no-sizes"}},
		{"info-unreachable", "damaged", exitPartial, []string{"info"}},
		{"info-unknown-sizes", "unknown sizes", exitPartial, []string{"info", "--cluster", "prod"}},
		{"info-empty", "empty", exitPartial, []string{"info", "--cluster", "prod"}},
		{"restore", "good", exitDone, []string{"restore", id, "--table", "ns:orders", "--as", "ns:orders_r", "--request-id", "r2"}},
		{"restore-done", "done", exitDone, []string{"restore", image, "--as", "ns:orders_r", "--request-id", "r2"}},
		{"verify", "good", exitDone, []string{"verify", id}},
		{"verify-damaged", "damaged", exitDamaged, []string{"verify", image, "--sizes-only"}},
		{"check", "good", exitDone, []string{"check", "--cluster", "prod"}},
		{"check-failed", "damaged", exitDenied, []string{"check", "--cluster", "prod"}},
		{"bench-committer", "good", exitDone, []string{"bench", "committer", "--target", "main", "--files", "1000", "--size", "64KiB", "--latency", "20ms"}},
		{"bench-committer-some", "done", exitDone, []string{"bench", "committer", "--target", "old", "--files", "2", "--size", "100", "--protocol", "magic,v2", "--parallel", "3"}},
		{"target-validate", "good", exitDone, []string{"target", "validate", "main"}},
		{"target-validate-failed", "damaged", exitRefused, []string{"target", "validate", "main", "--full"}},
		{"config-show", "good", exitDone, []string{"config", "show", "--log-level", "warn"}},
		{"config-validate", "good", exitDone, []string{"config", "validate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, form := range formats {
				stdout, stderr, code := invoke(t, c.fake, append(c.args, "-o", form, "--quiet")...)
				if code != c.code {
					t.Errorf("%s: exit code %d, want %d\n%s", form, code, c.code, stderr)
				}
				golden(t, "golden/"+c.name+"."+form, stdout)
				wellFormed(t, form, c.code, stdout)
			}
		})
	}
}

// wellFormed checks what every output of a form promises.
func wellFormed(t *testing.T, form string, code exitCode, out string) {
	t.Helper()
	if strings.Contains(out, "hunter2") || strings.Contains(out, "access-key-value") {
		t.Error("a secret is shown")
	}
	switch format(form) {
	case formatJSON:
		var doc struct{ Schema string }
		if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.HasPrefix(doc.Schema, "hbackup.") {
			t.Errorf("not one document with a schema: %v\n%s", err, out)
		}
	case formatJSONL:
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		var last struct{ Type, Schema string }
		for _, l := range lines {
			last.Type, last.Schema = "", ""
			if err := json.Unmarshal([]byte(l), &last); err != nil || last.Type == "" {
				t.Errorf("not an object with a type: %v: %s", err, l)
			}
		}
		want := "summary"
		if code != exitDone {
			want = "error"
		}
		if last.Type != want || last.Schema == "" {
			t.Errorf("the last line is of type %q, schema %q", last.Type, last.Schema)
		}
	case formatTable:
		for line := range strings.Lines(out) {
			if strings.HasSuffix(line, " \n") {
				t.Errorf("the line ends in a space: %q", line)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for _, verb := range []string{"", "backup", "list", "describe", "info", "restore", "verify", "check", "target", "target validate", "bench", "bench committer", "config", "config show", "config validate", "version"} {
		name := strings.ReplaceAll(verb, " ", "-")
		if name == "" {
			name = "hbackup"
		}
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(verb)
			long, stderr, code := invoke(t, "empty", append(words, "--help")...)
			if code != exitDone || stderr != "" {
				t.Errorf("code %d, stderr %q", code, stderr)
			}
			golden(t, "help/"+name+".txt", long)
			for _, line := range strings.Split(long, "\n") {
				if !strings.HasPrefix(line, "  hbackup ") && len(line) > helpWidth {
					t.Errorf("too wide: %s", line)
				}
			}
			for _, other := range [][]string{append(words, "-h"), append([]string{"help"}, words...)} {
				if out, _, _ := invoke(t, "empty", other...); out != long {
					t.Errorf("%v shows another page", other)
				}
			}
		})
	}
}
