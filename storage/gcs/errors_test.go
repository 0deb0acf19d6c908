package gcs

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// calls are all the ways to ask a store for something.
func calls(s *Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Put": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a/key", strings.NewReader("x"), storage.PutOptions{Size: 1})
			return err
		},
		"Put if absent": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a/key", strings.NewReader("x"), storage.PutOptions{Size: 1, IfAbsent: true})
			return err
		},
		"Put in chunks": func(ctx context.Context) error {
			n := s.c.ChunkSize + 1
			_, err := s.Put(ctx, "a/key", strings.NewReader(strings.Repeat("x", int(n))), storage.PutOptions{Size: n})
			return err
		},
		"Get": func(ctx context.Context) error {
			_, _, err := s.Get(ctx, "a/key", storage.Range{})
			return err
		},
		"Get range": func(ctx context.Context) error {
			_, _, err := s.Get(ctx, "a/key", storage.Range{Offset: 1})
			return err
		},
		"Stat": func(ctx context.Context) error {
			_, err := s.Stat(ctx, "a/key")
			return err
		},
		"List": func(ctx context.Context) error {
			for _, err := range s.List(ctx, "a/", storage.ListOptions{}) {
				return err
			}
			return nil
		},
		"Delete": func(ctx context.Context) error { return s.Delete(ctx, "a/key") },
		"DeleteBatch": func(ctx context.Context) error {
			failures, err := s.DeleteBatch(ctx, []storage.Key{"a/key"})
			if err == nil && len(failures) > 0 {
				err = failures[0].Err
			}
			return err
		},
		"ServerTime": func(ctx context.Context) error {
			_, err := s.ServerTime(ctx)
			return err
		},
	}
}

// TestWrongConfiguration has settings that cannot work: each call says so in the
// right kind and with something to try next.
func TestWrongConfiguration(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	creds := newCredentials(t, "service_account")
	for _, tc := range []struct {
		name   string
		kind   hbackup.Kind
		text   string // in the error or its hint
		change func(*Config)
	}{
		{"missing bucket", hbackup.KindUsage, "no-such-bucket", func(c *Config) { c.Bucket = "no-such-bucket" }},
		{"nobody listens", hbackup.KindUnavailable, closed.Addr().String(), func(c *Config) { c.Endpoint = "http://" + closed.Addr().String() }},
		{"no such host", hbackup.KindUnavailable, "storage.invalid", func(c *Config) { c.Endpoint = "http://storage.invalid:9000" }},
		{"https to http", hbackup.KindUsage, "TLS", func(c *Config) {
			c.Endpoint, c.CredentialsFile, c.CAFile = strings.Replace(c.Endpoint, "http:", "https:", 1), creds.file, creds.ca
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := configFor(t)
			c.RetryFor = 10 * time.Millisecond
			tc.change(&c)
			s := open(t, c)
			for name, call := range calls(s) {
				checkTells(t, s, name, call(t.Context()), tc.kind, tc.text)
			}
		})
	}
}

// checkTells checks an error's kind, that it names the place, speaks of what is
// wanted and has a hint, and that it fits on a line.
func checkTells(t *testing.T, s *Store, name string, err error, kind hbackup.Kind, text string) {
	t.Helper()
	if err == nil || !hbackup.IsKind(err, kind) {
		t.Errorf("%s: kind %q, want %q: %v", name, hbackup.KindOf(err), kind, err)
		return
	}
	hint := hbackup.HintOf(err)
	all := err.Error() + " " + hint
	if !strings.Contains(all, text) || !strings.Contains(err.Error(), string(s.Location())) || strings.Contains(all, "\n") {
		t.Errorf("%s: %v (hint: %s); want it to speak of %q on one line", name, err, hint, text)
	}
	if hint == "" && kind != hbackup.KindOther {
		t.Errorf("%s: no hint: %v", name, err)
	}
	for _, secret := range []string{"upload_id", "hunter2", "PRIVATE KEY", "Bearer"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s: a secret in %q", name, all)
		}
	}
}

// TestAnswersOfStores has answers as the service gives them, and what is made of
// them.
func TestAnswersOfStores(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run without -short")
	}
	t.Parallel()
	for _, tc := range []struct {
		status int
		reason string
		kind   hbackup.Kind
	}{
		{400, "invalid", hbackup.KindOther},
		{401, "authError", hbackup.KindDenied},
		{403, "forbidden", hbackup.KindDenied},
		{403, "accountDisabled", hbackup.KindDenied},
		{403, "rateLimitExceeded", hbackup.KindThrottled},
		{403, "quotaExceeded", hbackup.KindNoSpace},
		{403, "retentionPolicyNotMet", hbackup.KindDenied},
		{408, "requestTimeout", hbackup.KindTimeout},
		{409, "conflict", hbackup.KindConflict},
		{410, "gone", hbackup.KindUnavailable},
		{418, "unheard", hbackup.KindOther},
		{429, "rateLimitExceeded", hbackup.KindThrottled},
		{499, "clientClosedRequest", hbackup.KindUnavailable},
		{500, "backendError", hbackup.KindUnavailable},
		{501, "notImplemented", hbackup.KindUnsupported},
		{502, "", hbackup.KindUnavailable},
		{503, "backendError", hbackup.KindUnavailable},
		{504, "", hbackup.KindUnavailable},
	} {
		s, _, p := behind(t, func(c *Config) { c.RetryFor = 20 * time.Millisecond })
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return refuse(w, r, tc.status, tc.reason)
		})
		for name, call := range calls(s) {
			err := call(t.Context())
			if name == "ServerTime" && tc.status == 403 && tc.kind == hbackup.KindDenied && err == nil {
				continue // a refusal has a date, too
			}
			if name == "ServerTime" && tc.status == 403 {
				continue
			}
			if err == nil || !hbackup.IsKind(err, tc.kind) {
				t.Errorf("%d %s: %s gave kind %q, want %q: %v", tc.status, tc.reason, name, hbackup.KindOf(err), tc.kind, err)
				continue
			}
			if !strings.Contains(err.Error(), "says the proxy") && !strings.Contains(err.Error(), "retention") {
				t.Errorf("%d %s: %s does not give the service's words: %v", tc.status, tc.reason, name, err)
			}
		}
	}
}

// TestSessionIsSecret has faults around a resumable upload, whose address lets
// everybody go on with it: no error may show it.
func TestSessionIsSecret(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"reset":   func(w http.ResponseWriter, r *http.Request) bool { proxy.Reset(t, w); return true },
		"refused": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 400, "invalid") },
		"odd answer": func(w http.ResponseWriter, r *http.Request) bool {
			w.Write([]byte("<html>"))
			return true
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", "/elsewhere?"+r.URL.RawQuery)
			w.WriteHeader(http.StatusFound)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, p := behind(t, func(c *Config) { c.RetryFor = 5 * time.Millisecond })
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return (op == opChunk || op == opLast) && do(w, r)
			})
			err := putBytes(t, s, "a/key", bytesFor(2*chunkQuantum), false)
			if err == nil {
				t.Fatal("the put succeeded")
			}
			if strings.Contains(err.Error(), "upload_id") {
				t.Errorf("the session's address is in the error: %v", err)
			}
		})
	}
}

// TestWords has texts of answers that are not fit to be shown as they are.
func TestWords(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a\nb"}}`:            "a b",
		"<html>no</html>":                         "",
		"plain\r\n\x1b[31m text":                  "plain ?[31m text",
		"\xff\xfe":                                "?",
		strings.Repeat("long ", 1000):             strings.TrimSpace(strings.Repeat("long ", 60)) + "…",
		`{"error":{"message":["of","a","list"]}}`: `{"error":{"message":["of","a","list"]}}`,
	} {
		if got := wordsOf(answerOf(apiError(body))); strings.TrimSpace(strings.Replace(got, " …", "…", 1)) != want {
			t.Errorf("%.60q gives %q; want %q", body, got, want)
		}
	}
}
