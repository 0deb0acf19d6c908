package gcs

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
)

// MinChunkSize is the smallest chunk in bytes, but for the last of an object.
const MinChunkSize = chunkQuantum

// Sizes that the service sets, in bytes.
const (
	chunkQuantum = 256 << 10 // every chunk but the last has a multiple of it
	maxKeyBytes  = 1024
)

// parallelChunks is how many chunks an object has at least that is sent in parts.
// Smaller ones are sent beside each other anyway, and each part is a request that
// is billed, while a resumable upload is one in all.
const parallelChunks = 16

// Defaults of Config.
const (
	DefaultChunkSize = 16 << 20
	DefaultParallel  = 4
	DefaultRetryFor  = 2 * time.Minute
)

// emulatorHost is the environment variable by which Google's libraries are
// pointed to an emulator.
const emulatorHost = "STORAGE_EMULATOR_HOST"

// Config describes one location in Google Cloud Storage. Only Bucket is required.
type Config struct {
	Bucket string
	Prefix string // "" or segments joined by '/', without one at either end

	// Endpoint is the URL of another service than Google's, such as
	// https://storage.example.org:4443. Without it the environment variable
	// STORAGE_EMULATOR_HOST is looked at, and a service that it names is used
	// without credentials. So is an endpoint with plain http, which must not see
	// any.
	Endpoint string
	CAFile   string // PEM file with further authorities to trust

	// CredentialsFile is a JSON file with the key of a service account or with the
	// description of a federated identity. Without it the application default
	// credentials are used: environment, gcloud's file, metadata server.
	CredentialsFile string

	StorageClass string // NEARLINE and so on; "" is the bucket's default

	ChunkSize int64 // bytes of a chunk, a multiple of 256 KiB; larger objects are sent in chunks
	Parallel  int   // parts of one large object that are sent at once; 1 sends chunks one after the other
	Memory    int64 // bytes of the chunks of all puts together; (Parallel+1) × ChunkSize when 0

	// RetryFor is how long failures that may pass are met with new attempts when
	// nothing moves on.
	RetryFor time.Duration

	// Wrap puts something around the HTTP transport that sees every attempt of every
	// request to the service, such as a counter.
	Wrap func(http.RoundTripper) http.RoundTripper

	backoff time.Duration // first pause before a retry
	settle  time.Duration // how long a cancelled put waits for the answer to its last byte
	stall   time.Duration // how long nothing may move before an attempt is given up

	parallelFrom int64 // the size in bytes from which on an object is sent in parts
}

// Location gives the name of the configured place, gs://bucket/prefix.
func (c Config) Location() storage.Location {
	return storage.Place{Scheme: storage.SchemeGS, Host: c.Bucket, Path: c.Prefix}.Location()
}

// withDefaults fills what was left open.
func (c Config) withDefaults() Config {
	if c.Endpoint == "" {
		if host := os.Getenv(emulatorHost); host != "" {
			if !strings.Contains(host, "://") {
				host = "http://" + host
			}
			c.Endpoint = host
		}
	}
	if c.ChunkSize == 0 {
		c.ChunkSize = DefaultChunkSize
	}
	if c.Parallel == 0 {
		c.Parallel = DefaultParallel
	}
	if c.Memory == 0 {
		c.Memory = int64(c.Parallel+1) * c.ChunkSize
	}
	if c.parallelFrom == 0 {
		c.parallelFrom = parallelChunks * c.ChunkSize
	}
	if c.RetryFor == 0 {
		c.RetryFor = DefaultRetryFor
	}
	if c.backoff == 0 {
		c.backoff = 200 * time.Millisecond
	}
	if c.settle == 0 {
		c.settle = 15 * time.Second
	}
	if c.stall == 0 {
		c.stall = time.Minute
	}
	return c
}

// validate reports the first setting that cannot work. It expects defaults to be filled.
func (c Config) validate() error {
	fail := func(format string, args ...any) error {
		return hbackup.Errorf("open", string(c.Location()), hbackup.KindUsage, format, args...)
	}
	if err := c.checkNames(); err != nil {
		return fail("%w", err)
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		switch {
		case err != nil:
			return fail("the endpoint is not a URL") // its text might hold a password
		case u.User != nil:
			return fail("the endpoint holds a user name or password; name a file under credentials")
		case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Path != "" && u.Path != "/", u.RawQuery != "":
			return fail("the endpoint must be http://host:port or https://host:port")
		}
	}
	switch {
	case c.ChunkSize < chunkQuantum || c.ChunkSize%chunkQuantum != 0 || c.ChunkSize > 1<<30:
		return fail("the chunk size is %d bytes; it must be a multiple of %d, up to 1 GiB", c.ChunkSize, chunkQuantum)
	case c.Memory < c.ChunkSize:
		return fail("the memory of %d bytes does not hold one chunk of %d bytes", c.Memory, c.ChunkSize)
	case c.Parallel < 1:
		return fail("%d parts at once cannot be", c.Parallel)
	case c.RetryFor < 0:
		return fail("the time for new attempts is negative")
	}
	return nil
}

func (c Config) checkNames() error {
	if len(c.Bucket) < 3 || len(c.Bucket) > 222 || strings.ContainsAny(c.Bucket, "/ ?#%\\:@") {
		return fmt.Errorf("%q is not a bucket name", c.Bucket)
	}
	p, err := storage.ParseLocation(string(c.Location()))
	switch {
	case err != nil:
		return err
	case p.Location() != c.Location():
		return fmt.Errorf("the prefix %q must be segments joined by single slashes", c.Prefix)
	case c.Prefix != "" && len(c.Prefix)+1+storage.MaxKeyBytes > maxKeyBytes:
		return fmt.Errorf("the prefix is longer than %d bytes", maxKeyBytes-1-storage.MaxKeyBytes)
	}
	return nil
}

// anonymous reports whether requests go out without credentials.
func (c Config) anonymous() bool {
	return strings.HasPrefix(c.Endpoint, "http://") || c.Endpoint != "" && c.CredentialsFile == "" && os.Getenv(emulatorHost) != ""
}

// base gives the URL under which the JSON API of the endpoint is.
func (c Config) base() string { return strings.TrimSuffix(c.Endpoint, "/") + "/storage/v1/" }

// xmlBase gives the URL under which the XML API is.
func (c Config) xmlBase() string {
	if c.Endpoint == "" {
		return "https://storage.googleapis.com/"
	}
	return strings.TrimSuffix(c.Endpoint, "/") + "/"
}
