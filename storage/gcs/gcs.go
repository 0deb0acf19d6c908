package gcs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gcs "cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/semaphore"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"hbackup"
	"hbackup/storage"
)

// Store is one location in Google Cloud Storage. It is safe for use by many
// goroutines.
type Store struct {
	c         Config
	loc       storage.Location
	client    *gcs.Client
	http      *http.Client // puts credentials on requests of our own
	transport *http.Transport
	memory    *semaphore.Weighted
	chunks    sync.Pool // of *[]byte with the size of a chunk

	staging  sync.Once   // of what is to be seen to before the first parallel upload
	serial   atomic.Bool // parallel uploads are not to be had here
	noUpdate atomic.Bool // the right to change metadata is missing

	// bucketSeen is the time, in nanoseconds since 1970, at which an answer last
	// proved that the bucket exists.
	bucketSeen atomic.Int64
}

var _ storage.Store = (*Store)(nil)

// New opens a location. It reads the credentials file, and may look for the
// metadata server of a machine of Google's, but sends no request to the store.
// Errors are KindUsage and KindDenied.
func New(ctx context.Context, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	transport, err := newTransport(c)
	if err != nil {
		return nil, err
	}
	client, err := newHTTPClient(c, transport)
	if err != nil {
		return nil, err
	}
	opts := []option.ClientOption{
		option.WithHTTPClient(client), option.WithoutAuthentication(), // the client sees to it
		gcs.WithJSONReads(), gcs.WithDisabledClientMetrics(), option.WithTelemetryDisabled(),
	}
	if c.Endpoint != "" {
		opts = append(opts, option.WithEndpoint(c.base()))
	}
	lib, err := gcs.NewClient(ctx, opts...)
	if err != nil {
		return nil, hbackup.E("open", string(c.Location()), hbackup.KindUsage, err)
	}
	s := &Store{c: c, loc: c.Location(), client: lib, http: client, transport: transport, memory: semaphore.NewWeighted(c.Memory)}
	lib.SetRetry(s.retryOptions()...)
	return s, nil
}

// retryOptions make the library repeat every request that failed in a way that
// may pass. All of them may be repeated: see the package comment on answers that
// got lost.
func (s *Store) retryOptions() []gcs.RetryOption {
	return []gcs.RetryOption{
		gcs.WithPolicy(gcs.RetryAlways),
		gcs.WithErrorFunc(mayPass),
		gcs.WithMaxRetryDuration(s.c.RetryFor),
		gcs.WithBackoff(gax.Backoff{Initial: s.c.backoff, Max: 100 * s.c.backoff, Multiplier: 2}),
	}
}

// Client gives the library's client that the store itself uses, and HTTPClient the
// one below it, which puts a token on every request, for requests that the
// contract of a store has no need of.
func (s *Store) Client() *gcs.Client { return s.client }

// HTTPClient is described at Client.
func (s *Store) HTTPClient() *http.Client { return s.http }

// Endpoint gives the URL of the service without a path.
func (s *Store) Endpoint() string {
	if s.c.Endpoint == "" {
		return "https://storage.googleapis.com"
	}
	return strings.TrimSuffix(s.c.Endpoint, "/")
}

// Location gives gs://bucket/prefix.
func (s *Store) Location() storage.Location { return s.loc }

// Capabilities says what the store can do beyond the contract.
func (s *Store) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		MaxKeyBytes: min(storage.MaxKeyBytes, maxKeyBytes-len(s.full(""))),
		BatchDelete: 1,
	}
}

// Close releases connections.
func (s *Store) Close() error {
	err := s.client.Close()
	s.transport.CloseIdleConnections()
	return err
}

// full gives the name in the bucket of a key, or the start of such names.
func (s *Store) full(key string) string {
	if s.c.Prefix == "" {
		return key
	}
	return s.c.Prefix + "/" + key
}

func (s *Store) object(key storage.Key) *gcs.ObjectHandle {
	return s.client.Bucket(s.c.Bucket).Object(s.full(string(key)))
}

// ServerTime gives the clock of the store, from the header of an answer.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	ctx, a := withAnswer(ctx)
	err := s.probe(ctx)
	if err != nil && statusOf(err) != http.StatusForbidden { // any answer will do
		return time.Time{}, s.fail(ctx, "ask for the time", "", err)
	}
	at, perr := http.ParseTime(a.date())
	if perr != nil {
		return time.Time{}, hbackup.Errorf("ask for the time", string(s.loc), hbackup.KindUnsupported, "the store's answer has no date")
	}
	return at, nil
}

// check is storage.Check and refuses what is no key here.
func (s *Store) check(ctx context.Context, op string, key storage.Key) error {
	if err := storage.Check(ctx, op, s.loc, key); err != nil {
		return err
	}
	if inTempDir(key) {
		return hbackup.Errorf(op, s.loc.At(key), hbackup.KindUsage, "%q is a reserved name", tempDir)
	}
	return nil
}

// probe asks for the shortest listing there is: unlike a question for the bucket
// itself it needs no further right.
func (s *Store) probe(ctx context.Context) error {
	q := &gcs.Query{Prefix: s.full("")}
	if err := q.SetAttrSelection([]string{"Name"}); err != nil {
		return err
	}
	it := s.client.Bucket(s.c.Bucket).Objects(ctx, q)
	it.PageInfo().MaxSize = 1
	if _, err := it.Next(); err != nil && !errors.Is(err, iterator.Done) {
		return err
	}
	s.sawBucket()
	return nil
}

// sawBucket notes that an answer proved that the bucket exists.
func (s *Store) sawBucket() { s.bucketSeen.Store(time.Now().UnixNano()) }

// checkBucket fails when there is no bucket: to take a missing bucket for a
// missing object would make a wrong configuration look like an empty place.
func (s *Store) checkBucket(ctx context.Context) error {
	if time.Since(time.Unix(0, s.bucketSeen.Load())) < time.Minute {
		return nil
	}
	err := s.probe(ctx)
	if err != nil && statusOf(err) != http.StatusForbidden { // which proves that it is there
		return s.fail(ctx, "look at the bucket", "", err)
	}
	s.sawBucket()
	return nil
}
