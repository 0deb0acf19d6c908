package storage

import (
	"strings"
	"testing"

	"hbackup"
)

func TestParseLocation(t *testing.T) {
	for in, want := range map[string]Place{
		"s3://bucket":                   {"s3", "bucket", ""},
		"s3://bucket/":                  {"s3", "bucket", ""},
		"s3://bucket/a/b":               {"s3", "bucket", "a/b"},
		"s3://bucket//a///b//":          {"s3", "bucket", "a/b"},
		"gs://b-1.x_y/with space/ä":     {"gs", "b-1.x_y", "with space/ä"},
		"hdfs://nn:8020/backups/":       {"hdfs", "nn:8020", "/backups"},
		"hdfs://nameservice/b/c":        {"hdfs", "nameservice", "/b/c"},
		"file:///srv/backup/":           {"file", "", "/srv/backup"},
		"file:///srv/.snap/@x":          {"file", "", "/srv/.snap/@x"},
		"mem://test":                    {"mem", "test", ""},
		"mem://test/part":               {"mem", "test", "part"},
		"hdfs://nn:8020/a%20b/x=1,y+2;": {"hdfs", "nn:8020", "/a%20b/x=1,y+2;"},
	} {
		got, err := ParseLocation(in)
		if err != nil || got != want {
			t.Errorf("%q gave %+v, %v; want %+v", in, got, err, want)
			continue
		}
		again, err := ParseLocation(string(got.Location()))
		if err != nil || again != got {
			t.Errorf("%q became %q, and that %+v, %v", in, got.Location(), again, err)
		}
	}
}

func TestParseLocationRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"":                              "empty",
		"/srv/backup":                   "no scheme",
		"backup":                        "no scheme",
		"s3:/bucket":                    "no scheme",
		"s3a://bucket/x":                `"s3a" is not known`,
		"S3://bucket/x":                 `"S3" is not known`,
		"://bucket":                     `"" is not known`,
		"ftp://host/x":                  `"ftp" is not known`,
		"s3://":                         "bucket is missing",
		"s3:///prefix":                  "bucket is missing",
		"gs:///prefix":                  "bucket is missing",
		"s3://bucket:9000/x":            "endpoint",
		"s3://bu cket/x":                "no name of",
		"s3://../x":                     "no name of",
		"mem://b%2Fc":                   "no name of",
		"hdfs://":                       "name node is missing",
		"hdfs:///path":                  "name node is missing",
		"hdfs://nn:8020":                "root directory",
		"hdfs://nn:8020/":               "root directory",
		"file://":                       "root directory",
		"file:///":                      "root directory",
		"file://srv/backup":             "three slashes",
		"mem://":                        "name is missing",
		"s3://bucket/../x":              `segment ".."`,
		"file:///a/./b":                 `segment "."`,
		"file:///a/\x00":                "control character",
		"file:///a/\xff":                "UTF-8",
		"s3://bucket/x?region=eu":       "no meaning",
		"s3://bucket/x#y":               "no meaning",
		"s3://KEY:hunter2@bucket/x":     "credentials",
		"s3://KEY:hun/ter2@bucket/x":    "credentials",
		"gs://KEY@bucket":               "credentials",
		"hdfs://u:hunter2@nn:8020/x":    "credentials",
		"s3://bucket/x?secret=hunter2":  "no meaning",
		"x://KEY:hunter2@host?hunter2":  "not known",
		"user:hunter2@host/path":        "no scheme",
		"s3://KEY:hunter2@x/y@z?p@q//@": "credentials",
	} {
		_, err := ParseLocation(in)
		if !hbackup.IsKind(err, hbackup.KindUsage) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q gave %v; want a usage error with %q", in, err, says)
			continue
		}
		if hbackup.HintOf(err) == "" {
			t.Errorf("%q: there is no hint", in)
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hun/ter2") || strings.Contains(err.Error(), "KEY") {
			t.Errorf("%q: the error repeats a secret: %v", in, err)
		}
	}
}

func FuzzParseLocation(f *testing.F) {
	for _, s := range []string{"s3://bucket/a/b", "hdfs://nn:8020/x", "file:///srv/b", "mem://x", "gs://b//c/", "s3://k:s@b/x", "file://h/x", "x", "s3://b/../c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseLocation(s)
		if err != nil {
			if !hbackup.IsKind(err, hbackup.KindUsage) {
				t.Errorf("%q gave %v", s, err)
			}
			return
		}
		l := string(p.Location())
		if again, err := ParseLocation(l); err != nil || again != p {
			t.Errorf("%q gave %q, and that %+v, %v", s, l, again, err)
		}
		if strings.HasSuffix(l, "/") || strings.Contains(l, "/../") || strings.Contains(p.Path, "//") || strings.Contains(p.Host, "@") {
			t.Errorf("%q gave %q", s, l)
		}
		if p.Path != "" && Key(strings.TrimPrefix(p.Path, "/")).Validate() != nil && !strings.Contains(p.Path, ":") && len(p.Path) < MaxKeyBytes {
			t.Errorf("%q gave the path %q, which is no key", s, p.Path)
		}
	})
}
