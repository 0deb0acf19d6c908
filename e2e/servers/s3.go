package servers

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"hbackup"
)

// S3Options choose how the S3 gateway is started. The zero value is plain HTTP
// with no bucket.
type S3Options struct {
	Dir       string   // where buckets, certificates and logs go; a temporary directory, removed at Stop, when empty
	Port      int      // 0: any free one
	TLS       bool     // serve HTTPS with a certificate of its own authority (CAFile)
	AccessLog bool     // write one line per request to AccessLogFile
	Buckets   []string // made at the start
	Versions  bool     // buckets can be versioned and locked
	Users     bool     // there can be users besides the root user (AddUser)
}

// S3 is a versitygw process over a local directory.
type S3 struct {
	AccessKey, SecretKey, Region string

	options S3Options
	binary  string
	dir     *workDir
	port    int
	health  string
	client  *http.Client
	process *process
}

// StartS3 starts the gateway and returns when it answers and the buckets exist.
func StartS3(ctx context.Context, o S3Options) (*S3, error) {
	binary, err := gatewayBinary(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(o.Dir, "s3")
	if err != nil {
		return nil, err
	}
	s := &S3{
		AccessKey: "hbackup-test", SecretKey: "hbackup-test-secret", Region: "us-east-1",
		options: o, binary: binary, dir: dir, port: o.Port, client: http.DefaultClient,
		health: "/_health-" + rand.Text(), // answered by this very process only
	}
	for _, dir := range []string{s.root(), s.versions(), s.users()} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	for _, b := range o.Buckets {
		// A directory below the root is a bucket of the root user.
		if err := os.MkdirAll(filepath.Join(s.root(), b), 0o777); err != nil {
			return nil, err
		}
	}
	if o.TLS {
		if err := s.makeCertificates(); err != nil {
			return nil, err
		}
	}
	if err := s.start(ctx); err != nil {
		return nil, dir.afterFailure(ctx, err)
	}
	return s, nil
}

// start tries another port when somebody took the one that was free a moment ago.
func (s *S3) start(ctx context.Context) error {
	const tries = 5
	var err error
	for range tries {
		port := s.port
		if port == 0 {
			if port, err = freePort(); err != nil {
				return err
			}
		}
		if err = s.startAt(ctx, port); err == nil {
			s.port = port
			return nil
		}
		if s.port != 0 || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (s *S3) startAt(ctx context.Context, port int) error {
	args := []string{"--port", address(port), "--access", s.AccessKey, "--secret", s.SecretKey,
		"--region", s.Region, "--health", s.health, "--keep-alive", "--quiet"}
	if s.options.TLS {
		args = append(args, "--cert", s.dir.path("server.pem"), "--key", s.dir.path("server.key"))
	}
	if s.options.AccessLog {
		args = append(args, "--access-log", s.AccessLogFile())
	}
	if s.options.Users {
		args = append(args, "--iam-dir", s.users())
	}
	args = append(args, "posix")
	if s.options.Versions {
		args = append(args, "--versioning-dir", s.versions())
	}
	cmd := exec.Command(s.binary, append(args, s.root())...)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=512MiB")
	p, err := spawn("s3 gateway", s.LogFile(), cmd, nil)
	if err != nil {
		return err
	}
	s.process = p
	err = eventually(ctx, p.ended, func() error {
		response, err := s.client.Get(s.scheme() + "://" + address(port) + s.health)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health: %s", response.Status)
		}
		return nil
	})
	if err != nil {
		ended := !p.alive()
		p.kill()
		if ended {
			return p.failure("start")
		}
		return hbackup.E("start the S3 gateway", address(port), hbackup.KindOther, err)
	}
	return nil
}

// Endpoint is the gateway's URL, with path-style bucket addressing.
func (s *S3) Endpoint() string { return s.scheme() + "://" + address(s.port) }

func (s *S3) scheme() string {
	if s.options.TLS {
		return "https"
	}
	return "http"
}

// Environment gives the variables that make AWS's own tools use this gateway.
func (s *S3) Environment() []string {
	env := []string{
		"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey,
		"AWS_REGION=" + s.Region, "AWS_ENDPOINT_URL=" + s.Endpoint(),
	}
	if s.options.TLS {
		env = append(env, "AWS_CA_BUNDLE="+s.CAFile())
	}
	return env
}

// CreateBucket makes an empty bucket that belongs to the root user.
func (s *S3) CreateBucket(name string) error { return os.Mkdir(s.BucketDir(name), 0o777) }

// BucketDir is the local directory that holds the bucket's objects as files, so
// that a test can look at, damage or remove them behind the gateway's back.
func (s *S3) BucketDir(name string) string { return filepath.Join(s.root(), name) }

func (s *S3) root() string { return s.dir.path("buckets") }

func (s *S3) versions() string { return s.dir.path("versions") }
func (s *S3) users() string    { return s.dir.path("users") }

// AddUser makes a user with a key of its own; it may do what policies of buckets
// allow. Only with Users.
func (s *S3) AddUser(ctx context.Context, access, secret string) error {
	return run(ctx, "", s.binary, "admin", "--access", s.AccessKey, "--secret", s.SecretKey, "--region", s.Region,
		"--endpoint-url", s.Endpoint(), "create-user", "--access", access, "--secret", secret, "--role", "user")
}

// CAFile is the PEM file of the authority that signed the gateway's certificate; only with TLS.
func (s *S3) CAFile() string { return s.dir.path("ca.pem") }

// AccessLogFile has one line per request in S3's server access log format; only with AccessLog.
func (s *S3) AccessLogFile() string { return s.dir.path("access.log") }

// LogFile has the gateway's output.
func (s *S3) LogFile() string { return s.dir.path("s3.log") }

// HTTPClient trusts the gateway's certificate.
func (s *S3) HTTPClient() *http.Client { return s.client }

// PID is the process id of the server.
func (s *S3) PID() int { return s.process.pid }

// Kill ends the gateway at once. Restart brings it back.
func (s *S3) Kill() { s.process.kill() }

// Restart starts the gateway again with its objects and its address.
func (s *S3) Restart(ctx context.Context) error {
	s.Kill()
	return s.start(ctx)
}

// Stop ends the gateway and removes its directory if it was a temporary one.
func (s *S3) Stop() error {
	s.process.kill()
	return s.dir.remove()
}

func (s *S3) makeCertificates() error {
	ca, cert, key, err := certificate(24 * 365 * time.Hour)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"ca.pem": ca, "server.pem": cert, "server.key": key} {
		if err := os.WriteFile(s.dir.path(name), text, 0o600); err != nil {
			return err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
