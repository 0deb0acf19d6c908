package gcs

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
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
	"hbackup/storage"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/storetest/proxy"
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
	valid    atomic.Int64 // the number of the first token that is taken
	clock    atomic.Int64 // seconds by which this machine's clock is behind that of the service
}

// taken gives a handler that lets requests with valid tokens pass.
func (c *withCredentials) taken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int64
		if fmt.Sscanf(r.Header.Get("Authorization"), "Bearer "+accessToken+".%d", &n); n >= c.valid.Load() && n > 0 {
			r.Header.Set("Authorization", "Bearer "+accessToken)
		}
		h.ServeHTTP(w, r)
	})
}

// checkTime refuses an assertion that is signed in another time, as the service
// that gives out tokens does.
func (c *withCredentials) checkTime(r *http.Request) error {
	parts := strings.Split(r.PostFormValue("assertion"), ".")
	if len(parts) != 3 {
		return nil // other credentials have none
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct{ Iat, Exp int64 }
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	now := time.Now().Unix() + c.clock.Load()
	if claims.Iat > now+300 || claims.Exp < now-300 || claims.Exp-claims.Iat > 3700 {
		return errors.New("the token must be a short-lived one in a reasonable time frame")
	}
	return nil
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
	mux.Handle("/", c.taken(backend))
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		n := c.tokens.Add(1)
		w.Header().Set("Content-Type", "application/json")
		status := c.refuse.Load()
		if c.checkTime(r) != nil {
			status = 400
		}
		if status != 0 {
			w.WriteHeader(int(status))
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"hunter2 is no good"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`,
			fmt.Sprintf("%s.%d", accessToken, n), c.lifetime.Load())
	})
	mux.HandleFunc("/subject", func(w http.ResponseWriter, r *http.Request) { // of a workload
		if r.Header.Get("Metadata") != "yes" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"id_token":"hunter2"}`)
	})
	mux.HandleFunc("/impersonate", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+accessToken) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"accessToken":%q,"expireTime":%q}`, accessToken+".1", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	})
	tls := quiet(mux)
	tls.StartTLS()
	t.Cleanup(func() { tls.Close(); backend.Close() })
	c.endpoint = tls.URL
	write(t, c.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	write(t, c.file, c.content(t, kind, dir))
	return c
}

// quiet gives a server that is not started and says nothing of odd clients.
func quiet(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

func (c *withCredentials) content(t *testing.T, kind, dir string) []byte {
	t.Helper()
	kind, variant, _ := strings.Cut(kind, ", ")
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
		switch variant {
		case "from a URL":
			in["credential_source"] = map[string]any{
				"url": c.endpoint + "/subject", "headers": map[string]string{"Metadata": "yes"},
				"format": map[string]string{"type": "json", "subject_token_field_name": "id_token"},
			}
		case "impersonating":
			in["service_account_impersonation_url"] = c.endpoint + "/impersonate"
		}
	case "external_account_authorized_user":
		in["token_url"], in["refresh_token"], in["client_id"], in["client_secret"] = c.endpoint+"/token", "hunter2", "id", "hunter2"
	case "impersonated_service_account":
		in["service_account_impersonation_url"] = c.endpoint + "/impersonate"
		in["source_credentials"] = json.RawMessage(c.content(t, "service_account", dir))
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
	for _, kind := range []string{
		"service_account", "external_account", "external_account, from a URL", "external_account, impersonating",
		"external_account_authorized_user", "impersonated_service_account",
	} {
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

// TestMetadataServer has no file at all: tokens are those of the machine's account,
// or of the one that a workload identity stands for.
func TestMetadataServer(t *testing.T) {
	c := newCredentials(t, "service_account")
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" {
			http.NotFound(w, r)
			return
		}
		if got := r.URL.Query().Get("scopes"); got != scope {
			t.Errorf("tokens for %q are asked for", got)
		}
		fmt.Fprintf(w, `{"access_token":"%s.%d","token_type":"Bearer","expires_in":3600}`, accessToken, c.tokens.Add(1))
	}))
	defer metadata.Close()
	t.Setenv("HOME", t.TempDir()) // no file of gcloud's
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	conf := c.config(t)
	conf.CredentialsFile = ""
	s := open(t, conf)
	if err := putBytes(t, s, "a/key", bytesFor(3*chunkQuantum), true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, s, "a/key", bytesFor(3*chunkQuantum))
	if n := c.tokens.Load(); n != 1 {
		t.Errorf("%d tokens were asked for", n)
	}
}

// TestTokenEndsEarly has a token refused in the middle of what it is used for,
// long before its time: another one is fetched, and all goes on.
func TestTokenEndsEarly(t *testing.T) {
	c := newCredentials(t, "service_account")
	end := func() { c.valid.Store(c.tokens.Load() + 1) }
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			conf := c.config(t)
			if conf.RetryFor = 20 * time.Second; shape.carrier == opPart {
				inShape(&conf)
			}
			s := open(t, conf)
			data := bytesFor(shape.size)
			if err := putBytes(t, s, "before", nil, false); err != nil {
				t.Fatal(err)
			}
			asked := c.tokens.Load()
			half := shape.size / 2
			body := io.MultiReader(bytes.NewReader(data[:half]), &atEOF{do: end}, bytes.NewReader(data[half:]), &atEOF{do: end})
			_, err := s.Put(t.Context(), "a/key", body, storage.PutOptions{Size: int64(len(data)), IfAbsent: shape.ifAbsent})
			if err != nil {
				t.Fatal(err)
			}
			checkHas(t, s, "a/key", data)
			if n := c.tokens.Load() - asked; n < 1 || n > 2 {
				t.Errorf("%d tokens were asked for", n)
			}
			for name, call := range calls(s) {
				end()
				// Not each call can succeed, but none for want of a token.
				if err := call(t.Context()); hbackup.IsKind(err, hbackup.KindDenied, hbackup.KindUnavailable, hbackup.KindOther) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	t.Run("for good", func(t *testing.T) {
		conf := c.config(t)
		conf.RetryFor = 20 * time.Second
		s := open(t, conf)
		if err := putBytes(t, s, "before", nil, false); err != nil {
			t.Fatal(err)
		}
		c.valid.Store(1 << 40)
		asked := c.tokens.Load()
		for name, call := range calls(s) {
			checkTells(t, s, name, call(t.Context()), hbackup.KindDenied, "credentials")
		}
		if n := c.tokens.Load() - asked; n != 1 {
			t.Errorf("%d tokens were asked for", n)
		}
		c.valid.Store(0) // the account is let in again
		if err := putBytes(t, s, "after", nil, false); err != nil {
			t.Fatal(err)
		}
	})
}

// atEOF is an empty reader that does something when it is reached.
type atEOF struct{ do func() }

func (a *atEOF) Read([]byte) (int, error) { a.do(); return 0, io.EOF }

// TestClockOff has a machine whose clock is 20 minutes behind or ahead. Tokens that
// are signed with a key are refused then, and it is said why. What the service
// itself counts by is its own clock.
func TestClockOff(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Minute, -20 * time.Minute, -2 * time.Hour} {
		c := newCredentials(t, "service_account")
		c.clock.Store(int64(off.Seconds()))
		refused := off > 0 && off > time.Hour+5*time.Minute || off < -5*time.Minute // what is signed is good for an hour
		s := open(t, c.config(t))
		for name, call := range calls(s) {
			err := call(t.Context())
			if refused {
				checkTells(t, s, name, err, hbackup.KindDenied, "clock")
			} else if err != nil && !hbackup.IsKind(err, hbackup.KindExists, hbackup.KindNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		there, now := ownServer(t, gcstest.Options{})
		*now = now.Add(off)
		at, err := there.ServerTime(t.Context())
		if err != nil || at.Sub(*now).Abs() > 2*time.Second {
			t.Errorf("the store's clock shows %v, %v; want %v", at, err, *now)
		}
		if err := putBytes(t, there, "a/key", bytesFor(minPart+1), true); err != nil {
			t.Error(err)
		}
		checkHas(t, there, "a/key", bytesFor(minPart+1))
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
	p := proxy.New(t, c.endpoint, operation)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
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
