package gcs

import (
	"os"
	"strings"
	"testing"

	"hbackup"
)

func TestConfigRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no bucket":             func(c *Config) { c.Bucket = "" },
		"bucket of two letters": func(c *Config) { c.Bucket = "ab" },
		"bucket with a slash":   func(c *Config) { c.Bucket = "abc/def" },
		"prefix with a slash":   func(c *Config) { c.Prefix = "a/" },
		"prefix that climbs":    func(c *Config) { c.Prefix = "a/../b" },
		"prefix too long":       func(c *Config) { c.Prefix = strings.Repeat("p", 200) },
		"endpoint of no scheme": func(c *Config) { c.Endpoint = "localhost:9000" },
		"endpoint with a key":   func(c *Config) { c.Endpoint = "https://user:hunter2@host" },
		"endpoint with a path":  func(c *Config) { c.Endpoint = "https://host/storage/v1/" },
		"odd endpoint":          func(c *Config) { c.Endpoint = "https://user:hunter2@ho st%zz" },
		"small chunks":          func(c *Config) { c.ChunkSize = 1 << 10 },
		"odd chunks":            func(c *Config) { c.ChunkSize = 1<<20 + 1 },
		"huge chunks":           func(c *Config) { c.ChunkSize = 2 << 30 },
		"little memory":         func(c *Config) { c.Memory = 1 << 10 },
		"retries in the past":   func(c *Config) { c.RetryFor = -1 },
		"missing CA file":       func(c *Config) { c.CAFile = "/no/such/ca" },
		"CA file of no use":     func(c *Config) { c.CAFile = os.DevNull },
	} {
		c := configFor(t)
		change(&c)
		s, err := New(t.Context(), c)
		if err == nil {
			s.Close()
			t.Errorf("%s: accepted", name)
			continue
		}
		if !hbackup.IsKind(err, hbackup.KindUsage) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: kind %q, %v", name, hbackup.KindOf(err), err)
		}
	}
}

// TestAnonymous says when requests go out without credentials: never to Google,
// and never with them over plain http.
func TestAnonymous(t *testing.T) {
	for _, tc := range []struct {
		emulator, endpoint, file string
		want                     bool
	}{
		{"", "", "", false},
		{"", "", "f", false},
		{"", "http://host:1", "", true},
		{"", "http://host:1", "f", true},
		{"", "https://host:1", "", false},
		{"host:1", "", "", true},
		{"https://host:1", "", "", true},
		{"https://host:1", "", "f", false},
	} {
		t.Setenv(emulatorHost, tc.emulator)
		if got := (Config{Endpoint: tc.endpoint, CredentialsFile: tc.file}).withDefaults().anonymous(); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(errorBody(403, "rateLimitExceeded"))
	f.Add(`{"error":{"message":7}}`)
	f.Add("<html>")
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		err := apiError(body)
		s := &Store{}
		v := s.judge(err)
		if strings.ContainsAny(v.text, "\r\n\x1b") || len(v.text) > 1000 {
			t.Fatalf("%q gives %q", body, v.text)
		}
		if v.kind == hbackup.KindNotFound || v.kind == hbackup.KindExists {
			t.Fatalf("status 400 gives %q", v.kind)
		}
		mayPass(err)
	})
}
