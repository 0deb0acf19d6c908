package gcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"

	"hbackup"
)

// scope is the right that tokens are asked for: to read and write objects, and
// not to change who else may.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// newHTTPClient gives a client that puts a fresh token on every request.
func newHTTPClient(c Config, base *http.Transport) (*http.Client, error) {
	watched := &watcher{rt: base, stall: c.stall, retryFor: c.RetryFor, backoff: c.backoff}
	if c.Wrap != nil {
		watched.rt = c.Wrap(base)
	}
	if c.anonymous() {
		return &http.Client{Transport: watched}, nil
	}
	in := &login{anew: func() (http.RoundTripper, error) {
		creds, err := findCredentials(c, base)
		if err != nil {
			return nil, err
		}
		creds.TokenProvider = tokens{creds.TokenProvider}
		client, err := httptransport.NewClient(&httptransport.Options{
			Credentials: creds, BaseRoundTripper: watched, DisableTelemetry: true,
		})
		if err != nil {
			return nil, hbackup.E("open", string(c.Location()), hbackup.KindUsage, err)
		}
		return client.Transport, nil
	}}
	watched.login = in
	var err error
	in.now, err = in.anew()
	return &http.Client{Transport: in}, err
}

// findCredentials gives the configured credentials or the default ones.
func findCredentials(c Config, base *http.Transport) (*auth.Credentials, error) {
	opts := &credentials.DetectOptions{
		Scopes: []string{scope},
		Client: &http.Client{Transport: base, Timeout: time.Minute}, // for tokens
	}
	if c.CredentialsFile == "" {
		creds, err := credentials.DetectDefault(opts)
		if err != nil {
			return nil, hbackup.E("find credentials", string(c.Location()), hbackup.KindDenied, err).
				WithHint("name a credentials file in the configuration, set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login")
		}
		return creds, nil
	}
	denied := func(cause error) *hbackup.Error {
		return hbackup.E("read credentials", c.CredentialsFile, hbackup.KindDenied, cause)
	}
	text, err := os.ReadFile(c.CredentialsFile)
	if err != nil {
		return nil, denied(err).WithHint("let the user who runs hbackup read the file")
	}
	var file struct{ Type credentials.CredType }
	const hint = "it must be the JSON file of a service account's key, or the description of a federated identity"
	// The causes of errors might hold parts of the file.
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, hbackup.Errorf("read credentials", c.CredentialsFile, hbackup.KindDenied, "it is not JSON").WithHint(hint)
	}
	switch file.Type {
	case credentials.ServiceAccount, credentials.AuthorizedUser, credentials.ExternalAccount,
		credentials.ImpersonatedServiceAccount, credentials.GDCHServiceAccount, credentials.ExternalAccountAuthorizedUser:
	default:
		return nil, hbackup.Errorf("read credentials", c.CredentialsFile, hbackup.KindDenied, "it holds no credentials of a kind that is known").WithHint(hint)
	}
	creds, err := credentials.NewCredentialsFromJSON(file.Type, text, opts)
	if err != nil {
		return nil, hbackup.Errorf("read credentials", c.CredentialsFile, hbackup.KindDenied, "the %s in it cannot be used", file.Type).WithHint(hint)
	}
	return creds, nil
}

// tokenError says that no token could be had. The cause may hold parts of the
// credentials and is not shown.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "no token can be had for the credentials" }
func (e *tokenError) Unwrap() error { return e.err }

// judgeToken classes it.
func judgeToken(e *tokenError) verdict {
	v := verdict{kind: hbackup.KindDenied, text: e.Error(),
		hint: "check the credentials, whether the key was revoked, and this machine's clock"}
	var answer *auth.Error
	var network net.Error
	switch {
	case errors.As(e.err, &answer) && answer.Response != nil:
		status := answer.Response.StatusCode
		v.text += fmt.Sprintf(": status %d", status)
		if status >= 500 || status == http.StatusTooManyRequests {
			v.kind, v.hint = hbackup.KindUnavailable, "the service that gives out tokens is in trouble; try later"
		}
	case errors.As(e.err, &network):
		v.kind, v.hint = hbackup.KindUnavailable, "the service that gives out tokens cannot be reached; check the network and the name service"
	}
	return v
}
