package s3

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup"
	"hbackup/storage"
)

// Store is one location in S3. It is safe for use by many goroutines.
type Store struct {
	c         Config
	loc       storage.Location
	client    *s3.Client
	ops       operations
	transport *http.Transport
	gate      *gate
	buffers   *buffers
	peers     *peers

	// bucketSeen is the time, in nanoseconds since 1970, at which an answer last
	// proved that the bucket exists.
	bucketSeen atomic.Int64
}

var _ storage.Store = (*Store)(nil)

// New opens a location. It reads configuration and credentials files, but sends
// no request to the store. Errors are KindUsage and KindDenied.
func New(ctx context.Context, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	transport, err := newTransport(c)
	if err != nil {
		return nil, err
	}
	gate := newGate(2 * c.backoff)
	do := &doer{rt: transport, gate: gate, stall: c.stall}
	if c.Wrap != nil {
		do.rt = c.Wrap(transport)
	}
	base, err := loadConfig(ctx, &c, transport.TLSClientConfig.RootCAs)
	if err != nil {
		return nil, err
	}
	headers, err := c.headers()
	if err != nil {
		return nil, err
	}
	s := &Store{c: c, loc: c.Location(), transport: transport, gate: gate, buffers: newBuffers(c.Memory, c.PartSize),
		peers: &peers{least: c.hedge}}
	s.client = s3.NewFromConfig(base, func(o *s3.Options) {
		o.HTTPClient = do
		o.APIOptions = append(o.APIOptions, headers.add)
		o.UsePathStyle = c.PathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
		keys, _ := base.Credentials.(*aws.CredentialsCache)
		o.Retryer = newRetryer(c, keys)
	})
	s.ops = s.newOperations(newRoute(ctx, s.client, c))
	return s, nil
}

// Client gives the SDK's client that the store itself uses, for requests that the
// contract of a store has no need of.
func (s *Store) Client() *s3.Client { return s.client }

// Location gives s3://bucket/prefix.
func (s *Store) Location() storage.Location { return s.loc }

// Capabilities says what the store can do beyond the contract.
func (s *Store) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		StoredDigest: s.c.Checksum == ChecksumCRC64NVME,
		MaxKeyBytes:  min(storage.MaxKeyBytes, maxKeyBytes-len(s.full(""))),
		BatchDelete:  maxDelete,
	}
}

// Close releases connections.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// full gives the name in the bucket of a key, or the start of such names.
func (s *Store) full(key string) string {
	if s.c.Prefix == "" {
		return key
	}
	return s.c.Prefix + "/" + key
}

// ServerTime gives the clock of the store, from the header of an answer.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	out, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.c.Bucket})
	if err != nil {
		if at, ok := dateOf(err); ok && statusOf(err) == http.StatusForbidden {
			return at, nil // any answer will do
		}
		return time.Time{}, s.failBucket(ctx, "ask for the time", err)
	}
	s.sawBucket()
	if at, ok := dateIn(out.ResultMetadata); ok {
		return at, nil
	}
	return time.Time{}, hbackup.Errorf("ask for the time", string(s.loc), hbackup.KindUnsupported, "the store's answer has no date")
}

// sawBucket notes that an answer proved that the bucket exists.
func (s *Store) sawBucket() { s.bucketSeen.Store(time.Now().UnixNano()) }

// checkBucket fails when there is no bucket. The answer to HEAD does not tell a
// missing object from a missing bucket, and to take the one for the other would
// make a wrong configuration look like an empty place.
func (s *Store) checkBucket(ctx context.Context) error {
	if time.Since(time.Unix(0, s.bucketSeen.Load())) < time.Minute {
		return nil
	}
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.c.Bucket})
	if err != nil && statusOf(err) != http.StatusForbidden { // which proves that it is there
		return s.failBucket(ctx, "look at the bucket", err)
	}
	s.sawBucket()
	return nil
}

// failBucket is fail for requests about the bucket itself.
func (s *Store) failBucket(ctx context.Context, op string, err error) error {
	if ctx.Err() == nil && statusOf(err) == http.StatusNotFound {
		out := usage(op, string(s.loc), "there is no bucket %s", s.c.Bucket)
		out.Hint = verdicts["NoSuchBucket"].hint
		return out
	}
	return s.fail(ctx, op, "", err)
}
