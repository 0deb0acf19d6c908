package gcstest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Options of a server. The zero value is a server without buckets that lets
// everybody in.
type Options struct {
	Buckets []string // there from the start
	Dir     string   // for contents; a new temporary directory when empty
	Token   string   // the bearer token that every request must have; "" for none

	// Retention is how long the policy of the buckets keeps every object from being
	// deleted or replaced.
	Retention time.Duration
	// Attributes are shown as a part of every bucket, in the words of the JSON API;
	// nothing is done about them.
	Attributes map[string]any
	// SessionLifetime is how long a resumable session may be used; a week when 0.
	SessionLifetime time.Duration
	// Now is the server's clock, also for the Date header; time.Now when nil.
	Now func() time.Time
}

// Server is the service. It is an http.Handler.
type Server struct {
	opts   Options
	dir    string
	ownDir bool

	mu       sync.Mutex // guards all below
	buckets  map[string]*bucket
	sessions map[string]*session
	uploads  map[string]*upload // of the XML API
	last     int64              // the youngest generation

	listener net.Listener
	http     *http.Server
}

// New gives a server that listens nowhere yet.
func New(opts Options) (*Server, error) {
	if opts.SessionLifetime == 0 {
		opts.SessionLifetime = 7 * 24 * time.Hour
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, dir: opts.Dir, buckets: map[string]*bucket{}, sessions: map[string]*session{}, uploads: map[string]*upload{}}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "gcstest-")
		if err != nil {
			return nil, err
		}
		s.dir, s.ownDir = dir, true
	}
	for _, name := range opts.Buckets {
		s.buckets[name] = &bucket{name: name, created: opts.Now(), objects: map[string]*object{}}
	}
	return s, nil
}

// Start lets the server listen at the address, 127.0.0.1:0 when it is empty.
func Start(addr string, opts Options) (*Server, error) {
	s, err := New(opts)
	if err != nil {
		return nil, err
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if s.listener, err = net.Listen("tcp", addr); err != nil {
		s.Close()
		return nil, err
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go s.http.Serve(s.listener) // ends with Close
	return s, nil
}

// Endpoint gives the URL of a started server, as in STORAGE_EMULATOR_HOST.
func (s *Server) Endpoint() string { return "http://" + s.listener.Addr().String() }

// Close stops the server and removes the contents.
func (s *Server) Close() error {
	if s.http != nil {
		s.http.Close()
	}
	if s.ownDir {
		return os.RemoveAll(s.dir)
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.opts.Now().UTC().Format(http.TimeFormat))
	c := &call{s: s, w: w, r: r, query: r.URL.Query()}
	if s.opts.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Token {
		c.fail(failure{http.StatusUnauthorized, "authError", "Invalid Credentials"})
		return
	}
	path := r.URL.EscapedPath()
	for _, p := range []struct {
		prefix string
		serve  func(path string) error
	}{
		{"/upload/storage/v1/", c.serveUpload},
		{"/resumable/upload/storage/v1/", c.serveUpload},
		{"/download/storage/v1/", c.serveJSON},
		{"/storage/v1/", c.serveJSON},
		{"/", c.serveXML},
	} {
		if rest, ok := strings.CutPrefix(path, p.prefix); ok {
			if err := p.serve(rest); err != nil {
				c.fail(err)
			}
			return
		}
	}
	c.fail(notFound("no such path"))
}

// call is one request.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	query map[string][]string
	xml   bool // the answer, too, is XML
}

// get gives a query parameter, "" if there is none.
func (c *call) get(name string) string {
	if v := c.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c *call) has(name string) bool { return len(c.query[name]) > 0 }

// generation gives a fresh one: larger than all before. The lock is held.
func (s *Server) generation() int64 {
	s.last = max(s.last+1, s.opts.Now().UnixMicro())
	return s.last
}

// bucket finds one. The lock is held.
func (s *Server) bucket(name string) (*bucket, error) {
	if b := s.buckets[name]; b != nil {
		return b, nil
	}
	return nil, notFound("The specified bucket does not exist.")
}

// object finds one. The lock is held.
func (s *Server) object(bucketName, name string) (*bucket, *object, error) {
	b, err := s.bucket(bucketName)
	if err != nil {
		return nil, nil, err
	}
	o := b.objects[name]
	if o == nil {
		return b, nil, noObject(bucketName, name)
	}
	return b, o, nil
}

func noObject(bucket, name string) error {
	return notFound(fmt.Sprintf("No such object: %s/%s", bucket, name))
}
