package storage

import (
	"fmt"
	"strings"

	"hbackup"
)

// The schemes of locations.
const (
	SchemeFile = "file"
	SchemeMem  = "mem"
	SchemeS3   = "s3"
	SchemeGS   = "gs"
	SchemeHDFS = "hdfs"
)

// Place is a Location taken apart. Host is the bucket of s3 and gs, the
// authority of hdfs (a host, host:port or the name of a name service), the name
// of mem, and empty for file. Path has no slash at either end, save that it
// starts with one for file and hdfs, where it is a directory from the root.
type Place struct {
	Scheme string
	Host   string
	Path   string
}

// Location gives the normalised form of the place.
func (p Place) Location() Location {
	path := p.Path
	if path != "" && path[0] != '/' {
		path = "/" + path
	}
	return Location(p.Scheme + "://" + p.Host + path)
}

// At gives the fully qualified name of an object of the location, as errors and
// listings show it.
func (l Location) At(key Key) string { return string(l) + "/" + string(key) }

// ParseLocation reads and normalises a location as people write it:
// s3://bucket/prefix, gs://bucket/prefix, hdfs://namenode:8020/path,
// file:///path or mem://name. Slashes at the end and doubled ones are taken
// out. Errors are KindUsage; a location with a password in it is refused and
// the password is not repeated.
func ParseLocation(s string) (Place, error) {
	bad := func(format string, args ...any) error {
		return hbackup.Errorf("read location", redact(s), hbackup.KindUsage, format, args...).
			WithHint("a location is s3://bucket/prefix, gs://bucket/prefix, hdfs://namenode:8020/path or file:///path")
	}
	if s == "" {
		return Place{}, bad("the location is empty")
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return Place{}, bad("it has no scheme")
	}
	switch scheme {
	case SchemeFile, SchemeMem, SchemeS3, SchemeGS, SchemeHDFS:
	default:
		return Place{}, bad("the scheme %q is not known", scheme)
	}
	switch {
	case scheme != SchemeFile && strings.Contains(rest, "@"):
		// Also behind the first '/': a secret key may hold one.
		return Place{}, bad("credentials do not belong into a location")
	case strings.ContainsAny(rest, "?#"):
		return Place{}, bad("'?' and '#' have no meaning in a location")
	}
	host, path, _ := strings.Cut(rest, "/")
	path, err := cleanPath(path)
	if err != nil {
		return Place{}, bad("%v", err)
	}
	p := Place{Scheme: scheme, Host: host, Path: path}
	if err := p.check(); err != nil {
		return Place{}, bad("%v", err)
	}
	if scheme == SchemeFile || scheme == SchemeHDFS {
		p.Path = "/" + p.Path
	}
	return p, nil
}

// cleanPath takes out empty segments and refuses what is no valid key.
func cleanPath(path string) (string, error) {
	var kept []string
	for seg := range strings.SplitSeq(path, "/") {
		if seg != "" {
			kept = append(kept, seg)
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	clean := strings.Join(kept, "/")
	if err := checkSegments(clean); err != nil {
		return "", fmt.Errorf("in the path, %w", err)
	}
	return clean, nil
}

// check applies the rules of each scheme; Path is without its first slash.
func (p Place) check() error {
	if p.Host != "" && (strings.ContainsFunc(p.Host, notInHost) || strings.Trim(p.Host, ".") == "") {
		return fmt.Errorf("%q is no name of a host or a bucket", p.Host)
	}
	switch p.Scheme {
	case SchemeFile:
		if p.Host != "" {
			return fmt.Errorf("a directory is written with three slashes, file:///%s", strings.TrimSuffix(p.Host+"/"+p.Path, "/"))
		}
		if p.Path == "" {
			return fmt.Errorf("the root directory cannot be a location")
		}
	case SchemeHDFS:
		if p.Host == "" {
			return fmt.Errorf("the name node is missing")
		}
		if p.Path == "" {
			return fmt.Errorf("the root directory cannot be a location")
		}
	case SchemeS3, SchemeGS:
		if p.Host == "" {
			return fmt.Errorf("the bucket is missing")
		}
		if strings.Contains(p.Host, ":") {
			return fmt.Errorf("%q is no name of a bucket; an endpoint is a setting of its own", p.Host)
		}
	case SchemeMem:
		if p.Host == "" {
			return fmt.Errorf("the name is missing")
		}
	}
	return nil
}

// notInHost reports characters that no name of a host or bucket has; colons and
// brackets belong to ports and to addresses of IP version 6.
func notInHost(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\%\"'`<>{}|^,;=*?#@!$&()+~", r)
}

// redact takes out of a refused location all that may be a secret: what stands
// before an '@' and what follows a '?'.
func redact(s string) string {
	s, _, query := strings.Cut(s, "?")
	if query {
		s += "?***"
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 && scheme != SchemeFile {
		rest = "***" + rest[at:]
	}
	if ok {
		return scheme + "://" + rest
	}
	return rest
}
