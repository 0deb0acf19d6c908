package config

import (
	"fmt"
	"slices"
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

// seenFrom gives u with the host of o when both are the same HDFS under different
// names: with and without the port, or a nameservice and one of its name nodes.
func (u URL) seenFrom(o URL, uNodes, oNodes []HostPort) URL {
	if u.Scheme == "hdfs" && o.Scheme == "hdfs" {
		theirs := o.nameNodes(oNodes)
		for _, node := range u.nameNodes(uNodes) {
			if slices.Contains(theirs, node) {
				u.Host = o.Host
			}
		}
	}
	return u
}

// nameNodes gives the addresses under which an HDFS is known.
func (u URL) nameNodes(nodes []HostPort) []HostPort {
	if len(nodes) > 0 {
		return nodes
	}
	if address, err := parseHostPort(u.Host, "8020"); err == nil {
		return []HostPort{address}
	}
	return nil
}

// knownAs gives the addresses under which the location's HDFS is known, those of
// WebHDFS among them.
func (loc *Location) knownAs() []HostPort {
	all := slices.Clone(loc.URL.nameNodes(loc.NameNodes))
	for _, a := range loc.WebHDFS {
		all = append(all, HostPort(a))
	}
	return all
}

// checkLocation reports why no backups can be kept at u.
func (u URL) checkLocation(nameNodes bool) error {
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
	case "hdfs":
		return u.checkHDFS(nameNodes)
	case "gs":
		return checkGoogleBucket(u.Host)
	case "viewfs":
		return hinted("name the HDFS itself, as hdfs://nn1:8020/backups", "there are no locations of the kind %s://", u.Scheme)
	case "webhdfs", "swebhdfs":
		scheme := map[string]string{"webhdfs": "http", "swebhdfs": "https"}[u.Scheme]
		return hinted("write url: hdfs://nn1:8020"+u.Path+" and beside it webhdfs: ["+scheme+"://"+u.Host+"]", "there are no locations of the kind %s://: the way to an HDFS is no part of its name", u.Scheme)
	}
	return hinted("write s3://bucket/prefix, gs://bucket/prefix, hdfs://nn1:8020/directory or file:///directory", "there are no locations of the kind %s://", u.Scheme)
}

// checkHDFS applies the rules of HDFS to a location.
func (u URL) checkHDFS(nameNodes bool) error {
	const example = "write it as hdfs://nn1:8020/backups"
	if u.Host == "" {
		return hinted(example, "%q names no name node", u)
	}
	if !nameNodes {
		if _, err := parseHostPort(u.Host, "8020"); err != nil {
			return err
		}
	}
	switch {
	case u.Path == "":
		return hinted(example, "the root directory of an HDFS cannot be a location")
	case strings.Contains(u.Path, ":"):
		return hinted("choose another directory", "%q holds a colon, which HDFS does not allow", u.Path)
	case strings.HasPrefix(u.Path+"/", "/.reserved/"), strings.Contains(u.Path+"/", "/.snapshot/"):
		return hinted("choose another directory", "HDFS keeps the name in %q for itself", u.Path)
	}
	return nil
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
		return hinted("write it as s3://bucket/prefix or gs://bucket/prefix", "the URL names no bucket")
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

// checkGoogleBucket applies the rules of Google Cloud Storage.
func checkGoogleBucket(name string) error {
	const hint = "bucket names have 3 to 63 lower-case letters, digits, '-', '_' and '.', and up to 222 with dots in between"
	if name == "" {
		return hinted("write it as s3://bucket/prefix or gs://bucket/prefix", "the URL names no bucket")
	}
	bad := len(name) < 3 || len(name) > 222 || strings.Trim(name[:1]+name[len(name)-1:], "-_.") != name[:1]+name[len(name)-1:]
	for label := range strings.SplitSeq(name, ".") {
		bad = bad || label == "" || len(label) > 63
	}
	if bad || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return hinted(hint, "%q is not a bucket name", name)
	}
	return nil
}
