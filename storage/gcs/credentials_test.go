package gcs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"hbackup"
	"hbackup/storage/gcs/gcstest"
)

// Secrets of these tests; no error may show one of them.
const accessToken = "ya29.hunter2"

func apiError(body string) error { return &googleapi.Error{Code: 400, Body: body} }

// withCredentials is a service behind TLS that wants a token, and the place where
// tokens are had.
type withCredentials struct {
	endpoint string
	file, ca string
	tokens   atomic.Int64 // how many were asked for
	refuse   atomic.Int64 // status with which tokens are refused; 0 for none
	lifetime atomic.Int64 // seconds
}

// newCredentials gives a file with credentials of a kind.
func newCredentials(t *testing.T, kind string) *withCredentials {
	t.Helper()
	dir := t.TempDir()
	c := &withCredentials{file: filepath.Join(dir, "credentials.json"), ca: filepath.Join(dir, "ca.pem")}
	c.lifetime.Store(3600)
	backend, err := gcstest.New(gcstest.Options{Buckets: []string{bucket}, Token: accessToken})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", backend)
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		c.tokens.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if status := c.refuse.Load(); status != 0 {
			w.WriteHeader(int(status))
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"hunter2 is no good"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`,
			accessToken, c.lifetime.Load())
	})
	tls := quietTLS(mux)
	t.Cleanup(func() { tls.Close(); backend.Close() })
	c.endpoint = tls.URL
	write(t, c.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	write(t, c.file, c.content(t, kind, dir))
	return c
}

// quietTLS serves over TLS and says nothing of clients that do not.
func quietTLS(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	return s
}

func (c *withCredentials) content(t *testing.T, kind, dir string) []byte {
	t.Helper()
	in := map[string]any{"type": kind}
	switch kind {
	case "service_account":
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		in["private_key"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		in["private_key_id"], in["client_email"], in["project_id"] = "1", "backup@project.example", "project"
		in["token_uri"] = c.endpoint + "/token"
	case "external_account":
		subject := filepath.Join(dir, "subject")
		write(t, subject, []byte("hunter2"))
		in["audience"] = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q"
		in["subject_token_type"] = "urn:ietf:params:oauth:token-type:jwt"
		in["token_url"] = c.endpoint + "/token"
		in["credential_source"] = map[string]any{"file": subject}
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *withCredentials) config(t *testing.T) Config {
	out := configFor(t)
	out.Endpoint, out.CAFile, out.CredentialsFile = c.endpoint, c.ca, c.file
	out.RetryFor = 20 * time.Millisecond
	return out
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCredentials uses a service that wants a token, over TLS, with each kind of
// credentials that can be tried here, named in the configuration or found in the
// environment.
func TestCredentials(t *testing.T) {
	for _, kind := range []string{"service_account", "external_account"} {
		for _, from := range []string{"configuration", "environment"} {
			t.Run(kind+"/"+from, func(t *testing.T) {
				c := newCredentials(t, kind)
				conf := c.config(t)
				if from == "environment" {
					t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.file)
					conf.CredentialsFile = ""
				}
				s := open(t, conf)
				for _, size := range []int{10, 3 * chunkQuantum} {
					if err := putBytes(t, s, "a/key", bytesFor(size), false); err != nil {
						t.Fatal(err)
					}
					checkHas(t, s, "a/key", bytesFor(size))
				}
				if n := c.tokens.Load(); n != 1 {
					t.Errorf("%d tokens were asked for", n)
				}
			})
		}
	}
}

// TestFreshTokens has tokens that are about to end: they are replaced while they
// are still good.
func TestFreshTokens(t *testing.T) {
	c := newCredentials(t, "service_account")
	c.lifetime.Store(60)
	s := open(t, c.config(t))
	if err := putBytes(t, s, "a/key", bytesFor(3*chunkQuantum), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no second token was asked for", func() bool { return c.tokens.Load() >= 2 })
}

// TestTokenRefused has credentials that give no token.
func TestTokenRefused(t *testing.T) {
	for status, kind := range map[int64]hbackup.Kind{400: hbackup.KindDenied, 401: hbackup.KindDenied, 503: hbackup.KindUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			c := newCredentials(t, "service_account")
			c.refuse.Store(status)
			s := open(t, c.config(t))
			for name, call := range calls(s) {
				err := call(t.Context())
				if err == nil || !hbackup.IsKind(err, kind) {
					t.Errorf("%s: kind %q, want %q: %v", name, hbackup.KindOf(err), kind, err)
					continue
				}
				if all := err.Error() + hbackup.HintOf(err); strings.Contains(all, "hunter2") || strings.Contains(all, "PRIVATE") {
					t.Errorf("%s: a secret in %q", name, all)
				}
			}
		})
	}
}

// TestWrongToken has a service that does not know the account.
func TestWrongToken(t *testing.T) {
	c := newCredentials(t, "service_account")
	other := newCredentials(t, "service_account")
	strict, err := gcstest.New(gcstest.Options{Buckets: []string{bucket}, Token: "another"})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	p := newFaultyProxy(t, c.endpoint)
	p.set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		strict.ServeHTTP(w, r)
		return true
	})
	conf := other.config(t)
	conf.Endpoint = p.URL // plain http: no token at all may be seen there
	s := open(t, conf)
	for name, call := range calls(s) {
		checkTells(t, s, name, call(t.Context()), hbackup.KindDenied, "credentials")
	}
	if n := other.tokens.Load(); n != 0 {
		t.Errorf("%d tokens were asked for to be sent in the clear", n)
	}
}

// TestUnknownAuthority does not trust a service whose certificate it cannot check.
func TestUnknownAuthority(t *testing.T) {
	c := newCredentials(t, "service_account")
	t.Setenv(emulatorHost, c.endpoint)
	conf := configFor(t)
	conf.Endpoint = ""
	s := open(t, conf)
	for name, call := range calls(s) {
		checkTells(t, s, name, call(t.Context()), hbackup.KindDenied, "certificate")
	}
}

// TestEmulator has the service named by the variable that Google's own libraries
// look at.
func TestEmulator(t *testing.T) {
	t.Setenv(emulatorHost, strings.TrimPrefix(server.Endpoint(), "http://"))
	conf := configFor(t)
	conf.Endpoint = ""
	s := open(t, conf)
	if err := putBytes(t, s, "a/key", bytesFor(chunkQuantum+1), true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, s, "a/key", bytesFor(chunkQuantum+1))
}

// TestCredentialsRefused has files that hold no credentials.
func TestCredentialsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty":          "",
		"not JSON":       "hunter2",
		"another JSON":   `{"hunter2":1}`,
		"unknown type":   `{"type":"hunter2"}`,
		"no key":         `{"type":"service_account","client_email":"a@b","token_uri":"https://x"}`,
		"bad key":        `{"type":"service_account","client_email":"a@b","private_key":"hunter2","token_uri":"https://x"}`,
		"half of a file": `{"type":"service_account","private_key":"hunter2`,
		"no source":      `{"type":"external_account","audience":"x","token_url":"https://x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "credentials.json")
			write(t, file, []byte(text))
			c := configFor(t)
			c.Endpoint, c.CredentialsFile = "https://storage.example.org", file
			s, err := New(t.Context(), c)
			if err == nil {
				// What the library looks at later fails with the first request.
				defer s.Close()
				s.c.RetryFor = time.Millisecond
				_, err = s.Stat(t.Context(), "a")
			}
			checkKind(t, err, hbackup.KindDenied)
			if all := err.Error() + hbackup.HintOf(err); strings.Contains(all, "hunter2") || hbackup.HintOf(err) == "" {
				t.Errorf("%v (hint: %s)", err, hbackup.HintOf(err))
			}
		})
	}
	c := configFor(t)
	c.Endpoint, c.CredentialsFile = "https://storage.example.org", "/no/such/file"
	_, err := New(t.Context(), c)
	checkKind(t, err, hbackup.KindDenied)
}
