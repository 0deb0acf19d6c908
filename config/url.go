package config

import (
	"errors"
	"fmt"
	"strings"
)

// URL is a fully qualified place: a scheme, an authority and an absolute path
// without a trailing slash. The path is taken as it is written; nothing in it is
// percent-encoded, because object keys and HDFS paths are not.
type URL struct {
	Scheme string // lower case
	Host   string // bucket, host:port or nameservice; empty for file
	Path   string // empty or starts with '/'
}

// String gives "scheme://host/path", or "" for the zero value.
func (u URL) String() string {
	if u == (URL{}) {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// MarshalText gives String.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads a place and checks what holds for every scheme.
func (u *URL) UnmarshalText(b []byte) error {
	s := string(b)
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" {
		return hinted("write it with its scheme, as s3://bucket/prefix, hdfs://nn1:8020/hbase or file:///srv/backup", "%q is not fully qualified", s)
	}
	host, path, slash := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		// The text may hold a password, so it is not repeated.
		return hinted("take the part before the @ out", "the address holds a user name")
	}
	if i := strings.IndexFunc(rest, notPrintable); i >= 0 {
		return fmt.Errorf("%q holds a space or control character", s)
	}
	if i := strings.IndexAny(rest, "?#\\*"); i >= 0 {
		return fmt.Errorf("%q holds the character %q", s, rest[i:i+1])
	}
	path = strings.TrimRight(path, "/")
	if slash && path != "" {
		for seg := range strings.SplitSeq(path, "/") {
			if seg == "" || seg == "." || seg == ".." {
				return fmt.Errorf("%q has the path segment %q", s, seg)
			}
		}
		path = "/" + path
	}
	*u = URL{Scheme: strings.ToLower(scheme), Host: host, Path: path}
	return nil
}

// Contains reports whether o is u or lies below it.
func (u URL) Contains(o URL) bool {
	return u.Scheme == o.Scheme && u.Host == o.Host &&
		(u.Path == o.Path || strings.HasPrefix(o.Path, u.Path+"/"))
}

// checkLocation reports why no backups can be kept at u.
func (u URL) checkLocation() error {
	switch u.Scheme {
	case "s3":
		return checkBucket(u.Host)
	case "file":
		if u.Host != "" {
			return hinted("write three slashes: file:///"+u.Host+u.Path, "%q names a host", u)
		}
		if u.Path == "" {
			return hinted("name a directory of its own, as file:///srv/hbackup", "the root directory of the machine cannot be a location")
		}
		return nil
	case "gs", "hdfs":
		return hinted("this version writes to s3:// and file://", "locations of the kind %s:// are not supported yet", u.Scheme)
	}
	return hinted("write s3://bucket/prefix or file:///directory", "there are no locations of the kind %s://", u.Scheme)
}

// checkRoot reports why u can be no directory of HBase.
func (u URL) checkRoot(nameNodes bool) error {
	switch u.Scheme {
	case "hdfs":
		if u.Host == "" {
			return hinted("write it as hdfs://nn1:8020/hbase", "%q names no name node", u)
		}
		if nameNodes {
			break // the host is the name of a nameservice
		}
		if _, err := parseHostPort(u.Host, "8020"); err != nil {
			return err
		}
	case "file":
		if u.Host != "" {
			return hinted("write three slashes: file:///"+u.Host+u.Path, "%q names a host", u)
		}
	default:
		return hinted("write it as hdfs://nn1:8020/hbase", "HBase on %s:// is not supported", u.Scheme)
	}
	if u.Path == "" {
		return hinted("it is hbase.rootdir in hbase-site.xml", "%q has no directory", u)
	}
	return nil
}

// checkBucket applies S3's rules for names of general purpose buckets.
func checkBucket(name string) error {
	const hint = "bucket names have 3 to 63 lower-case letters, digits, '.' and '-'"
	if name == "" {
		return errors.New("the URL names no bucket")
	}
	if len(name) < 3 || len(name) > 63 {
		return hinted(hint, "%q is not a bucket name", name)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		inner := i > 0 && i < len(name)-1
		if !letter && !(inner && (c == '.' || c == '-')) {
			return hinted(hint, "%q is not a bucket name", name)
		}
	}
	return nil
}
