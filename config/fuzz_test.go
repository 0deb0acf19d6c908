package config

import (
	"errors"
	"strings"
	"testing"

	"hbackup"
)

// FuzzLoad checks that no text, variable or flag makes the loader panic, that
// whatever it refuses is a fault of the user, and that what it accepts is whole.
func FuzzLoad(f *testing.F) {
	f.Add(whole, "HBACKUP_COPY_CONCURRENCY=3", "clusters.prod.target", "old")
	f.Add(minimal, "HBACKUP_LOCATIONS_MAIN_CREDENTIALS_ACCESS_KEY_ENV=X", "locations.x.url", "s3://bucket")
	f.Add("a: &a [*a]\n", "HBACKUP_=", "...", "")
	f.Add("version: 1\nclusters: &c {a: {registry: *c}}\n", "", "version", "2")
	f.Add("? [a]\n: b\n", "x", "", "=")
	f.Add("version: !!null 1\nlog: !!merge {}\ncopy: !!binary x\n", "", "log.level", "\x00")
	f.Fuzz(func(t *testing.T, text, env, key, value string) {
		c, err := load(text, []string{env}, Override{Key: key, Value: value, Flag: "--set"})
		if err == nil {
			checkWhole(t, c)
			return
		}
		var e *Error
		if !errors.As(err, &e) || len(e.Problems) == 0 || hbackup.KindOf(err) != hbackup.KindUsage {
			t.Fatalf("not an error of the user: %v", err)
		}
		for _, p := range e.Problems {
			if p.Msg == "" || strings.ContainsAny(p.Msg+p.Hint, "\n\r\x1b") {
				t.Errorf("message %q, hint %q", p.Msg, p.Hint)
			}
		}
	})
}

func checkWhole(t *testing.T, c *Config) {
	if len(c.Clusters) == 0 || len(c.Values()) == 0 {
		t.Fatal("accepted without clusters or values")
	}
	for name, cl := range c.Clusters {
		if cl.Name != name || name.Validate() != nil || cl.Root == (URL{}) || cl.WAL == (URL{}) || cl.SnapshotTTL <= 0 || cl.OperationTimeout <= 0 {
			t.Errorf("accepted cluster %+v", cl)
		}
		for _, loc := range c.LocationsOf(cl) {
			if loc == nil {
				t.Fatalf("cluster %s refers to no location", name)
			}
		}
	}
}
