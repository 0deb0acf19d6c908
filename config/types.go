package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hbackup"
)

// LocationName is the name an operator gives to a location. It follows the
// rules of cluster names.
type LocationName string

// Validate reports why the name cannot be used.
func (n LocationName) Validate() error {
	if err := hbackup.ClusterName(n).Validate(); err != nil {
		return errors.New(strings.Replace(err.Error(), "cluster name", "location name", 1))
	}
	return nil
}

// SetName is the name an operator gives to a set of tables. It follows the rules
// of cluster names.
type SetName string

// Validate reports why the name cannot be used.
func (n SetName) Validate() error {
	if err := hbackup.ClusterName(n).Validate(); err != nil {
		return errors.New(strings.Replace(err.Error(), "cluster name", "set name", 1))
	}
	return nil
}

// Size is a number of bytes, written as "16MiB" or as a plain number.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String gives the shortest exact form.
func (s Size) String() string {
	if s != 0 {
		for _, u := range sizeUnits {
			if int64(s)%u.bytes == 0 {
				return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
			}
		}
	}
	return "0B"
}

// UnmarshalText reads a whole number of bytes with an optional binary unit.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	number, unit := text, int64(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimSpace(head), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || n < 0 || strings.HasPrefix(number, "+"):
		return hinted("write it as 16MiB, 512KiB or as a number of bytes", "%q is not a size", text)
	case n > math.MaxInt64/unit:
		return fmt.Errorf("%q is too large", text)
	}
	*s = Size(n * unit)
	return nil
}

// MarshalText gives String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// HostPort is a network address "host:port", without a scheme.
type HostPort string

// parseHostPort adds the default port when there is none.
func parseHostPort(s, port string) (HostPort, error) {
	if strings.Contains(s, "://") || strings.ContainsAny(s, "/@?# \t") {
		return "", hinted("write it as host:"+port, "%q is not an address", s)
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		host, p = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), port
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", hinted("write it as host:"+port, "%q is not an address", s)
		}
	}
	if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
		return "", hinted("write it as host:"+port, "%q: %q is not a port", s, p)
	}
	if host == "" || strings.ContainsFunc(host, notPrintable) {
		return "", hinted("write it as host:"+port, "%q has no host", s)
	}
	return HostPort(net.JoinHostPort(host, p)), nil
}

// Endpoint is the address of an object store: http or https, a host, no path.
type Endpoint string

// WebAddress is where WebHDFS or HttpFS is served: http or https, a host, no path.
type WebAddress string

// UnmarshalText checks the address.
func (a *WebAddress) UnmarshalText(b []byte) error {
	text, err := webAddress(string(b), "WebHDFS", "write it as http://nn1:9870, or https://nn1:9871", "name the user with the key user, or by delegation_token")
	*a = WebAddress(text)
	return err
}

// UnmarshalText checks the address.
func (e *Endpoint) UnmarshalText(b []byte) error {
	text, err := webAddress(string(b), "an object store", "write it as https://s3.example.org or http://host:9000", "put keys under credentials, or name a credentials_file")
	*e = Endpoint(text)
	return err
}

// webAddress reads the address of a service, without the slash at its end.
func webAddress(s, what, hint, userHint string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return "", hinted(hint, "%q is not the address of %s", s, what)
	case u.User != nil:
		// The text may hold a password, so it is not repeated.
		return "", hinted(userHint, "the address holds a user name")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "", hinted(hint, "%q: only a scheme, a host and a port belong here", s)
	}
	return u.Scheme + "://" + u.Host, nil
}

// ParseDuration reads a duration as it stands in the file: "36h" or "3d".
func ParseDuration(s string) (time.Duration, error) { return parseDuration(s) }

// parseDuration reads Go's durations and also days, as in "3d" and "1d12h".
func parseDuration(s string) (time.Duration, error) {
	const hint = "write it as 90s, 10m, 72h or 3d"
	rest, days := s, time.Duration(0)
	if head, tail, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(head, 10, 16)
		if err != nil {
			return 0, hinted(hint, "%q is not a duration", s)
		}
		days, rest = time.Duration(n)*24*time.Hour, tail
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || (days > 0 && d >= 24*time.Hour) {
		return 0, hinted(hint, "%q is not a duration", s)
	}
	return days + d, nil
}

// formatDuration leaves out the units that Duration.String writes as zero.
func formatDuration(d time.Duration) string {
	s := d.String()
	if head, ok := strings.CutSuffix(s, "m0s"); ok {
		s = head + "m"
	}
	if head, ok := strings.CutSuffix(s, "h0m"); ok {
		s = head + "h"
	}
	return s
}

// hintedError is a fault in a value, with a hint for its writer.
type hintedError struct {
	error
	hint string
}

func hinted(hint, format string, args ...any) error {
	return hintedError{fmt.Errorf(format, args...), hint}
}

func notPrintable(r rune) bool { return r < 0x21 || r == 0x7f }
