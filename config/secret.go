package config

import (
	"fmt"
	"iter"
	"os"
	"strings"

	"hbackup"
)

// Secret is a reference to a secret: the name of an environment variable or of
// a file. It never holds the secret itself, so it can be printed.
type Secret struct {
	Env  string `key:"env" doc:"Name of the environment variable that holds the secret."`
	File string `key:"file" doc:"File that holds the secret; a line end behind it is dropped."`
}

// IsSet reports whether the secret is referred to at all.
func (s Secret) IsSet() bool { return s != Secret{} }

// Secrets gives the secrets of a location under their keys, those that are not set
// too.
func (loc *Location) Secrets() iter.Seq2[string, Secret] {
	return func(yield func(string, Secret) bool) {
		_ = yield("credentials.access_key", loc.Credentials.AccessKey) &&
			yield("credentials.secret_key", loc.Credentials.SecretKey) &&
			yield("credentials.session_token", loc.Credentials.SessionToken) &&
			yield("sse.customer_key", loc.SSE.CustomerKey) &&
			yield("delegation_token", loc.DelegationToken)
	}
}

// maxSecret bounds what is read from a file.
const maxSecret = 64 << 10

// Read gives the secret. A missing or empty one is KindDenied.
func (s Secret) Read() (string, error) {
	fail := func(path, format string, args ...any) (string, error) {
		return "", hbackup.Errorf("read secret", path, hbackup.KindDenied, format, args...)
	}
	switch {
	case s.Env != "":
		v := os.Getenv(s.Env)
		if v == "" {
			return fail("env "+s.Env, "the environment variable is not set")
		}
		return v, nil
	case s.File != "":
		f, err := os.Open(s.File)
		if err != nil {
			return fail(s.File, "%w", plainPathError(err))
		}
		defer f.Close()
		buf := make([]byte, maxSecret+1)
		n, err := readFull(f, buf)
		if err != nil {
			return fail(s.File, "%w", plainPathError(err))
		}
		if n > maxSecret {
			return fail(s.File, "the file is longer than %d bytes", maxSecret)
		}
		v := strings.TrimRight(string(buf[:n]), "\r\n")
		if v == "" {
			return fail(s.File, "the file is empty")
		}
		return v, nil
	}
	return fail("", "no secret is configured")
}

// String says where the secret is and whether it is there, never what it is.
func (s Secret) String() string {
	var from string
	switch {
	case s.Env != "":
		from = "env " + s.Env
	case s.File != "":
		from = "file " + s.File
	default:
		return "(not set)"
	}
	if _, err := s.Read(); err != nil {
		return fmt.Sprintf("(missing, from %s)", from)
	}
	return fmt.Sprintf("(set, from %s)", from)
}
