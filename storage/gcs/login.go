package gcs

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
)

// login puts tokens on requests. When the store refuses a token that it took
// before, because it was revoked or has ended earlier than this machine's clock
// says, another one is fetched.
type login struct {
	anew func() (http.RoundTripper, error) // finds the credentials, without a token yet

	mu      sync.Mutex
	now     http.RoundTripper // keeps a token until shortly before its end
	good    string            // the last token that the store took
	refused string            // the last one that was replaced
}

// RoundTrip sends a request with a token.
func (l *login) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	now := l.now
	l.mu.Unlock()
	return now.RoundTrip(req)
}

// renews looks at the status of an answer, and reports whether the token that the
// request carried is refused where another one may be taken.
func (l *login) renews(req *http.Request, status int) bool {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if l == nil || !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status != http.StatusUnauthorized:
		l.good = token
		return false
	case token == l.refused:
		return true // a request that was under way at the time
	case token != l.good:
		return false // it was never good for anything
	}
	now, err := l.anew()
	if err != nil {
		return false
	}
	l.now, l.refused, l.good = now, token, ""
	return true
}

// tokens tells a failure to get a token from a failure of the store.
type tokens struct{ auth.TokenProvider }

// Token gives a token or a tokenError.
func (t tokens) Token(ctx context.Context) (*auth.Token, error) {
	token, err := t.TokenProvider.Token(ctx)
	if err != nil {
		return nil, &tokenError{err: err}
	}
	return token, nil
}
