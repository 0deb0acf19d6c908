package redact

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	var s Secrets
	s.Add("hunter2hunter2")
	s.Add("hunter2hunter2-and-more")
	s.Add("abc") // too short to be a secret
	for in, want := range map[string]string{
		"key hunter2hunter2 of abc":                                  "key (redacted) of abc",
		"hunter2hunter2-and-more":                                    "(redacted)",
		"GET https://user:pw@host/x":                                 "GET https://user:(redacted)@host/x",
		"https://h/o?X-Amz-Signature=ab12&x=1":                       "https://h/o?X-Amz-Signature=(redacted)&x=1",
		"http://nn:9870/webhdfs/v1/x?op=OPEN&delegation=AAB&y":       "http://nn:9870/webhdfs/v1/x?op=OPEN&delegation=(redacted)&y",
		"Authorization: Bearer ya29.x y":                             "Authorization: Bearer (redacted) y",
		"hdfs://nn1:8020/hbase and s3://bucket/a@b stay as they are": "hdfs://nn1:8020/hbase and s3://bucket/a@b stay as they are",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", in, got, want)
		}
	}
}

func TestHandler(t *testing.T) {
	var s Secrets
	s.Add("hunter2hunter2")
	var b bytes.Buffer
	log := slog.New(s.Handler(slog.NewTextHandler(&b, nil)))
	log = log.With("with", "hunter2hunter2", slog.Group("g", "password", "x"))
	log.WithGroup("group").Info("said hunter2hunter2",
		"error", errors.New("denied for hunter2hunter2"), "bytes", []byte("hunter2hunter2"), "n", 7, "session_token", "short",
		"struct", struct{ Key string }{"hunter2hunter2"})
	out := b.String()
	if strings.Contains(out, "hunter2") || strings.Contains(out, "short") || strings.Contains(out, "password=x") {
		t.Errorf("a secret shows: %s", out)
	}
	for _, want := range []string{`msg="said (redacted)"`, `with=(redacted)`, `group.error="denied for (redacted)"`, "group.n=7", "group.session_token=(redacted)", "g.password=(redacted)", "group.struct={(redacted)}"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
}
