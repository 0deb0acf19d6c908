package rpc

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is an HBase version, for example 2.6.4-hadoop3.
type Version struct {
	Major, Minor, Patch int
	Text                string
}

// ParseVersion reads "2.6.4-hadoop3" and the like; the patch number may be absent.
func ParseVersion(text string) (Version, error) {
	v := Version{Text: cleanLine(text, 100)}
	number, _, _ := strings.Cut(text, "-")
	parts := strings.Split(number, ".")
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("%q is not an HBase version", v.Text)
	}
	for i, into := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if i >= len(parts) {
			break
		}
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return Version{}, fmt.Errorf("%q is not an HBase version", v.Text)
		}
		*into = int(n)
	}
	return v, nil
}

// AtLeast reports whether the version is major.minor or later.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// String gives the server's own text.
func (v Version) String() string { return v.Text }
