package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// validateAt runs target validate with the real services on a location that is
// written as YAML. The keys of S3 are those of the environment.
func validateAt(t *testing.T, location string, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hunter2hunter2", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "hbackup.yaml")
	text := fmt.Sprintf("version: 1\nclusters:\n  prod: {registry: {zookeeper: [zk1]}, root: \"hdfs://nn1:8020/hbase\", target: main}\nlocations:\n  main: %s\n", location)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	p := &program{stdout: &out, stderr: &errOut, environ: []string{}, now: time.Now, connect: connect, searchPaths: []string{file}}
	code = p.run(context.Background(), append([]string{"target", "validate", "main", "--quiet"}, args...))
	return out.String(), errOut.String(), code
}

// refusing is an S3 that gives the same answer to everything, and fails the test
// when something is to be written.
func refusing(t *testing.T, status int, code string, clock time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			t.Errorf("%s %s was asked for", r.Method, r.URL)
		}
		w.Header().Set("Date", time.Now().Add(clock).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			io.WriteString(w, "<Error><Code>"+code+"</Code><Message>says the store</Message></Error>")
		}
	}))
	t.Cleanup(s.Close)
	return fmt.Sprintf(`{url: "s3://backups/hbase", endpoint: %q, path_style: true, region: us-east-1}`, s.URL)
}

// What an operator can get wrong about a location is said in one line with a hint,
// before anything is written.
func TestBadLocations(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	taken := t.TempDir()
	if err := os.WriteFile(taken+"/cat.jpg", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		location string
		code     exitCode
		says     []string
	}{
		"malformed URL":                   {`{url: "s3:/backups"}`, exitUsage, []string{"fully qualified"}},
		"unknown scheme":                  {`{url: "ftp://backups"}`, exitUsage, []string{"ftp://", "s3://bucket/prefix"}},
		"no bucket in it":                 {`{url: "s3:///hbase"}`, exitUsage, []string{"bucket"}},
		"a password in it":                {`{url: "s3://me:hunter2hunter2@backups"}`, exitUsage, []string{"user name"}},
		"bucket of another account":       {refusing(t, 403, "AccessDenied", 0), exitDenied, []string{"s3://backups/hbase", "AccessDenied", "s3:ListBucket"}},
		"bucket missing":                  {refusing(t, 404, "NoSuchBucket", 0), exitUsage, []string{"NoSuchBucket", "create the bucket"}},
		"expired token":                   {refusing(t, 400, "ExpiredToken", 0), exitDenied, []string{"ExpiredToken", "get a new one"}},
		"unknown key":                     {refusing(t, 403, "InvalidAccessKeyId", 0), exitDenied, []string{"InvalidAccessKeyId", "check the key"}},
		"wrong secret":                    {refusing(t, 403, "SignatureDoesNotMatch", 0), exitDenied, []string{"SignatureDoesNotMatch", "secret key"}},
		"clock 20 minutes off":            {refusing(t, 403, "RequestTimeTooSkewed", 20*time.Minute), exitDenied, []string{"RequestTimeTooSkewed", "this machine's clock says"}},
		"bucket in another region":        {refusing(t, 301, "PermanentRedirect", 0), exitUsage, []string{"region"}},
		"directory that is not there":     {fmt.Sprintf(`{url: "file://%s"}`, missing), exitNotFound, []string{missing, "mount"}},
		"directory of somebody else":      {fmt.Sprintf(`{url: "file://%s"}`, taken), exitRefused, []string{"cat.jpg", "--init"}},
		"credentials file is not there":   {`{url: "gs://backups", credentials_file: /nowhere/key.json}`, exitDenied, []string{"/nowhere/key.json"}},
		"a name of HDFS that is reserved": {`{url: "hdfs://nn1:8020/.reserved/x"}`, exitUsage, []string{".reserved"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "expired token" {
				long(t) // a fresh one is waited for
			}
			stdout, stderr, code := validateAt(t, c.location)
			if code != c.code || stdout != "" {
				t.Errorf("exit code %d; want %d\n%s%s", code, c.code, stdout, stderr)
			}
			for _, text := range c.says {
				if !strings.Contains(stderr, text) {
					t.Errorf("it does not say %q:\n%s", text, stderr)
				}
			}
			errors, hints := 0, 0
			for line := range strings.Lines(stderr) {
				switch {
				case strings.HasPrefix(line, "hbackup: "):
					errors++
				case strings.HasPrefix(line, "hint: "):
					hints++
				}
			}
			if errors != 1 || hints != 1 || strings.Contains(stderr, "hunter2") {
				t.Errorf("%d lines of errors and %d hints:\n%s", errors, hints, stderr)
			}
		})
	}
}

// A directory is tried out by the real services from end to end.
func TestValidateADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := validateAt(t, fmt.Sprintf(`{url: "file://%s"}`, dir))
	if code != exitDone || !strings.Contains(stdout, "backups are safe there") || !strings.Contains(stdout, "hard links") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// long leaves out what takes seconds.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}
