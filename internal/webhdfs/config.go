package webhdfs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"hbackup"
)

// Config says how to reach an HDFS over HTTP. Zero values mean the defaults given.
type Config struct {
	// Authority is what stands in URIs behind "hdfs://", as with the native client.
	// It is a name only: nothing is asked there.
	Authority string
	// Addresses are where WebHDFS is served, "http://nn1:9870": all name nodes of an
	// HA group, or HttpFS gateways. Only scheme, host and port count.
	Addresses []string
	// User acts on the name node when there is no Token. Default:
	// $HADOOP_USER_NAME, then the user of this process.
	User string
	// Token gives a delegation token in its URL form. It is asked before each call,
	// so that a token that is renewed in a file is found.
	Token func() (string, error)
	// CAFile has the authorities, in PEM, that certificates are checked against.
	// Default: those of the system.
	CAFile string

	// CallTimeout bounds one answer (default 60 s), DataTimeout one wait for bytes to
	// come or go (default 60 s), DialTimeout one connection (default 10 s).
	CallTimeout, DataTimeout, DialTimeout time.Duration
	// RetryFor, StartFor and Log are about name nodes that cannot answer; see
	// hadoop.Patience.
	RetryFor, StartFor time.Duration
	Log                *slog.Logger
	// FileMode and DirMode are the rights of what is made (default 0644 and 0755).
	FileMode, DirMode os.FileMode
	// Replication and BlockSize are those of new files (default: as the name node says).
	Replication int
	BlockSize   int64
}

func (c Config) withDefaults() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return c, hbackup.Errorf("configure WebHDFS", "hdfs://"+c.Authority, hbackup.KindUsage, format, args...)
	}
	if len(c.Addresses) == 0 {
		return bad("no address is given")
	}
	c.Addresses = slices.Clone(c.Addresses)
	for i, a := range c.Addresses {
		u, err := url.Parse(a)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return bad("%q is no address such as http://nn1:9870", a)
		}
		c.Addresses[i] = u.Scheme + "://" + u.Host
	}
	if c.Authority == "" {
		_, c.Authority, _ = strings.Cut(c.Addresses[0], "://")
	}
	if c.User == "" {
		c.User = os.Getenv("HADOOP_USER_NAME")
	}
	if c.User == "" && c.Token == nil {
		u, err := user.Current()
		if err != nil {
			return bad("find the user's name: %w", err)
		}
		c.User = u.Username
	}
	orDefault(&c.CallTimeout, 60*time.Second)
	orDefault(&c.DataTimeout, 60*time.Second)
	orDefault(&c.DialTimeout, 10*time.Second)
	orDefault(&c.FileMode, 0o644)
	orDefault(&c.DirMode, 0o755)
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// transport makes the connections. Redirects are followed by hand: a write is one
// by its protocol, and where one leads is looked at.
func (c Config) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: c.DialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: c.DialTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     15 * time.Second,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
		// The bytes are files' own, and their lengths are compared.
		DisableCompression: true,
	}
	if c.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, hbackup.E("read certificates", c.CAFile, hbackup.KindUsage, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, hbackup.Errorf("read certificates", c.CAFile, hbackup.KindUsage, "there is no certificate in PEM in it")
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool}
	return t, nil
}
