package s3

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"hbackup"
	"hbackup/storage"
)

// MinPartSize is the smallest part in bytes, but for the last of an object.
const MinPartSize = minPartSize

// Sizes that S3 sets, in bytes.
const (
	minPartSize = 5 << 20
	maxPartSize = 5 << 30
	maxParts    = 10_000
	maxKeyBytes = 1024
)

// Defaults of Config.
const (
	DefaultRegion      = "us-east-1"
	DefaultPartSize    = 16 << 20
	DefaultParallel    = 4
	DefaultMaxAttempts = 8
)

// Checksum is the dialect in which a store wants to be told what an object's
// bytes must be.
type Checksum string

const (
	// ChecksumCRC64NVME sends S3's own full-object checksum: AWS, versitygw,
	// SeaweedFS and others. The zero value means this.
	ChecksumCRC64NVME Checksum = "crc64nvme"
	// ChecksumMD5 sends Content-MD5 with every body, for stores that refuse the
	// newer headers. It costs most of a core per 600 MB/s.
	ChecksumMD5 Checksum = "md5"
	// ChecksumNone sends none: only for a store that refuses both.
	ChecksumNone Checksum = "none"
)

// Encryption is how the store encrypts objects at rest.
type Encryption string

const (
	EncryptionDefault Encryption = ""        // whatever the bucket says
	EncryptionSSES3   Encryption = "AES256"  // keys of the store
	EncryptionSSEKMS  Encryption = "aws:kms" // a key of the KMS; see Config.KMSKey
	// EncryptionSSEC is by a key that every request carries and the store forgets;
	// see Config.CustomerKey. Who loses it has lost the objects.
	EncryptionSSEC Encryption = "customer"
)

// Config describes one location in S3. Only Bucket is required.
type Config struct {
	Bucket string
	Prefix string // "" or segments joined by '/', without one at either end

	Region    string // DefaultRegion when empty and neither environment nor profile name one
	Endpoint  string // URL of another store than AWS, such as https://s3.example.org:9000
	PathStyle bool   // bucket in the path, not in the host name; most other stores want it
	CAFile    string // PEM file with further authorities to trust

	Credentials Credentials

	StorageClass string // STANDARD_IA and so on; "" is the bucket's default
	Encryption   Encryption
	KMSKey       string // key id or ARN, with EncryptionSSEKMS only; "" is the bucket's key
	// CustomerKey refers to the key of EncryptionSSEC, as the fields of Credentials
	// do: 32 bytes in base64. It goes over https only.
	CustomerKey string

	// Tags are put on every object, at most ten.
	Tags map[string]string
	// RequesterPays agrees to pay for requests to somebody else's bucket.
	RequesterPays bool

	// Checksum is the store's dialect.
	Checksum Checksum
	// DeleteMD5 adds Content-MD5 to batch deletes, which some stores insist on.
	DeleteMD5 bool
	// SignPayload puts the SHA-256 of every body into its signature. It costs most
	// of a core. Without it a body is covered by its checksum and, over https, by
	// TLS. A store that demands it over plain http answers
	// XAmzContentSHA256Mismatch or InvalidRequest without.
	SignPayload bool

	PartSize int64 // bytes of a part; larger objects than this are uploaded in parts
	Parallel int   // parts of one object in flight at once
	Memory   int64 // bytes of all buffers of the store together; (Parallel+1) × PartSize when 0

	MaxAttempts int // tries of one request, the first included

	// Logger gets what an operator may have to act on, such as an upload that
	// could not be aborted. slog.Default() when nil.
	Logger *slog.Logger

	// Wrap puts something around the HTTP transport that sees every attempt of every
	// request to the store, such as a counter.
	Wrap func(http.RoundTripper) http.RoundTripper

	backoff time.Duration // first pause before a retry
	settle  time.Duration // how long a cancelled put waits for the answer to its last byte
	stall   time.Duration // how long nothing may move before an attempt is given up
	hedge   time.Duration // how long a part may take at least before it is sent a second time
}

// Credentials say where the access key comes from. The zero value is the SDK's
// own chain: environment, shared files, web identity, container and instance
// roles, each refreshed before it expires. No field holds a secret.
type Credentials struct {
	Profile string // of the shared configuration files

	// References to the parts of a static key: "env:NAME" or "file:/path". They
	// are read again whenever the store says that the key has expired.
	AccessKey, SecretKey, SessionToken string

	// RoleARN is assumed with what the fields above give, or, with TokenFile, with
	// the token that is in it each time: a web identity, as Kubernetes hands out.
	RoleARN, ExternalID, SessionName string
	TokenFile                        string
	// STSEndpoint is the URL of the service that knows roles, of another store than
	// AWS.
	STSEndpoint string
}

// Location gives the name of the configured place, s3://bucket/prefix.
func (c Config) Location() storage.Location {
	if c.Prefix == "" {
		return storage.Location("s3://" + c.Bucket)
	}
	return storage.Location("s3://" + c.Bucket + "/" + c.Prefix)
}

// withDefaults fills what was left open.
func (c Config) withDefaults() Config {
	if c.Checksum == "" {
		c.Checksum = ChecksumCRC64NVME
	}
	if c.PartSize == 0 {
		c.PartSize = DefaultPartSize
	}
	if c.Parallel == 0 {
		c.Parallel = DefaultParallel
	}
	if c.Memory == 0 {
		c.Memory = int64(c.Parallel+1) * c.PartSize
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = DefaultMaxAttempts
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.backoff == 0 {
		c.backoff = 100 * time.Millisecond
	}
	if c.settle == 0 {
		c.settle = 15 * time.Second
	}
	if c.stall == 0 {
		c.stall = time.Minute
	}
	if c.hedge == 0 {
		c.hedge = 3 * time.Second
	}
	return c
}

// validate reports the first setting that cannot work. It expects defaults to be filled.
func (c Config) validate() error {
	fail := func(format string, args ...any) error {
		return usage("open", string(c.Location()), format, args...)
	}
	if err := c.checkNames(); err != nil {
		return fail("%w", err)
	}
	for what, endpoint := range map[string]string{"the endpoint": c.Endpoint, "the endpoint of STS": c.Credentials.STSEndpoint} {
		if err := checkEndpoint(endpoint); err != nil {
			return fail("%s %w", what, err)
		}
	}
	if err := checkTags(c.Tags); err != nil {
		return fail("%w", err)
	}
	switch c.Checksum {
	case ChecksumCRC64NVME, ChecksumMD5, ChecksumNone:
	default:
		return fail("unknown checksum dialect %q", c.Checksum)
	}
	switch c.Encryption {
	case EncryptionDefault, EncryptionSSES3, EncryptionSSEKMS, EncryptionSSEC:
	default:
		return fail("unknown encryption %q", c.Encryption)
	}
	switch {
	case c.KMSKey != "" && c.Encryption != EncryptionSSEKMS:
		return fail("a KMS key is set, but the encryption is not %s", EncryptionSSEKMS)
	case (c.CustomerKey != "") != (c.Encryption == EncryptionSSEC):
		return fail("a customer's key and the encryption %s go together", EncryptionSSEC)
	case c.CustomerKey != "" && !isReference(c.CustomerKey):
		return fail("a key must be given as env:NAME or file:/path, never as the key itself")
	case c.CustomerKey != "" && strings.HasPrefix(c.Endpoint, "http:"):
		return fail("a customer's key would go over plain http; use an https endpoint")
	case c.PartSize < minPartSize || c.PartSize > maxPartSize:
		return fail("the part size is %d bytes; S3 allows %d to %d", c.PartSize, minPartSize, int64(maxPartSize))
	case c.Parallel < 1 || c.MaxAttempts < 1:
		return fail("parallel parts and attempts must be at least 1")
	case c.Memory < c.PartSize:
		return fail("the memory of %d bytes does not hold one part of %d bytes", c.Memory, c.PartSize)
	}
	return c.Credentials.validate(fail)
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("is not a URL") // its text might hold a password
	case u.User != nil:
		return errors.New("holds a user name or password; name the key under credentials")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("%q must be http://host:port or https://host:port", endpoint)
	}
	return nil
}

// checkTags applies S3's rules.
func checkTags(tags map[string]string) error {
	if len(tags) > 10 {
		return fmt.Errorf("%d tags are set; S3 takes ten", len(tags))
	}
	for name, value := range tags {
		switch {
		case name == "" || strings.HasPrefix(name, "aws:"):
			return fmt.Errorf("%q is not a tag's name", name)
		case utf8.RuneCountInString(name) > 128 || utf8.RuneCountInString(value) > 256:
			return fmt.Errorf("the tag %.40q is too long; S3 takes names of 128 and values of 256 characters", name)
		}
	}
	return nil
}

func (c Config) checkNames() error {
	if len(c.Bucket) < 3 || len(c.Bucket) > 255 || strings.ContainsAny(c.Bucket, "/ ?#%\\:@") {
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

func (c Credentials) validate(fail func(string, ...any) error) error {
	if (c.AccessKey == "") != (c.SecretKey == "") || c.SessionToken != "" && c.AccessKey == "" {
		return fail("a static key needs both its access key and its secret key")
	}
	for _, ref := range []string{c.AccessKey, c.SecretKey, c.SessionToken} {
		if ref != "" && !isReference(ref) {
			return fail("a key must be given as env:NAME or file:/path, never as the key itself")
		}
	}
	switch {
	case c.RoleARN == "" && (c.ExternalID != "" || c.SessionName != "" || c.TokenFile != "" || c.STSEndpoint != ""):
		return fail("settings of a role are there, but no role")
	case c.TokenFile != "" && (c.ExternalID != "" || c.AccessKey != "" || c.Profile != ""):
		return fail("a role by web identity takes neither a key, nor a profile, nor an external id")
	case c.Profile != "" && c.AccessKey != "":
		return fail("a profile and a key are set; keep one of the two")
	}
	return nil
}

func usage(op, path, format string, args ...any) *hbackup.Error {
	return hbackup.Errorf(op, path, hbackup.KindUsage, format, args...)
}
