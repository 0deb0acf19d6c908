package storage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Key names an object inside a location: segments separated by '/', relative,
// so that a location can be moved as a whole.
type Key string

// Limits that every supported store can hold.
const (
	MaxKeyBytes     = 900 // S3 allows 1,024; the rest is for the location's prefix
	MaxSegmentBytes = 255 // the longest file name on HDFS and on Linux
)

// Validate reports why the key cannot be used on every kind of store.
func (k Key) Validate() error {
	s := string(k)
	switch {
	case s == "":
		return fmt.Errorf("the key is empty")
	case len(s) > MaxKeyBytes:
		return fmt.Errorf("the key %.40q… is longer than %d bytes", s, MaxKeyBytes)
	}
	if err := checkSegments(s); err != nil {
		return err
	}
	if strings.Contains(s, ":") {
		return fmt.Errorf("the key %q holds a colon, which HDFS does not allow", s)
	}
	return nil
}

// checkSegments applies the rules that keys and the paths of locations share.
func checkSegments(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	for seg := range strings.SplitSeq(s, "/") {
		switch {
		case seg == "":
			return fmt.Errorf("%q has an empty segment", s)
		case seg == "." || seg == "..":
			return fmt.Errorf("%q has the segment %q", s, seg)
		case len(seg) > MaxSegmentBytes:
			return fmt.Errorf("%.40q… has a segment longer than %d bytes", s, MaxSegmentBytes)
		}
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return fmt.Errorf("%q holds a control character", s)
		}
	}
	return nil
}

// Join builds a key from segments or partial keys; empty parts are left out.
func Join(parts ...string) Key {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return Key(strings.Join(kept, "/"))
}
