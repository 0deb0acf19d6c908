// Package hbackup holds the domain words of hbackup: the names, ids, places
// and times that every other package speaks in. Read this file first; it
// imports only the standard library and knows no store, no cluster and no verb.
//
// A backup is one run over a set of tables of a cluster. It writes one image
// per table: the table at one moment, as a manifest and the HFiles it names.
// Images live in a location. A restore turns an image back into a table.
package hbackup

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ClusterName is the name an operator gives to one HBase cluster in the
// configuration. It is the first path segment below a location and part of
// snapshot names, so it is limited to [A-Za-z0-9][A-Za-z0-9_-]*, 64 bytes.
type ClusterName string

// ProbeFolder is what no cluster may be called: below it locations are tried out.
const ProbeFolder = "probe"

// Validate reports why the name cannot be used.
func (c ClusterName) Validate() error {
	if c == "" {
		return fmt.Errorf("the cluster name is empty")
	}
	if len(c) > 64 {
		return fmt.Errorf("cluster name %q is longer than 64 bytes", string(c))
	}
	for i := 0; i < len(c); i++ {
		b := c[i]
		if isAlnum(b) || (i > 0 && (b == '_' || b == '-')) {
			continue
		}
		return fmt.Errorf("cluster name %q: character %q is not allowed (letters, digits, '_' and '-', starting with a letter or digit)", string(c), string(rune(b)))
	}
	return nil
}

// DefaultNamespace is the HBase name space of tables written without one.
const DefaultNamespace = "default"

// SystemNamespace is the name space of HBase's own tables.
const SystemNamespace = "hbase"

// TableName is a fully qualified HBase table name. The zero value is no table.
type TableName struct {
	Namespace string // never empty in a valid name; "default" when none was written
	Qualifier string
}

// ParseTableName reads "qualifier" or "namespace:qualifier" by HBase's own
// rules (TableName.isLegalFullyQualifiedTableName): a name space holds letters,
// digits and '_'; a qualifier also '-' and '.', but does not start with them.
func ParseTableName(s string) (TableName, error) {
	t := TableName{Namespace: DefaultNamespace, Qualifier: s}
	if ns, q, found := strings.Cut(s, ":"); found {
		t = TableName{Namespace: ns, Qualifier: q}
	}
	return t, t.Validate()
}

// Validate reports why HBase would refuse the name. A valid name is safe as two
// path segments.
func (t TableName) Validate() error {
	if t.Qualifier == "" {
		return fmt.Errorf("table name %q: the qualifier is empty", t.String())
	}
	if t.Namespace == "" {
		return fmt.Errorf("table name %q: the name space is empty", t.String())
	}
	if !utf8.ValidString(t.Namespace) || !utf8.ValidString(t.Qualifier) {
		return fmt.Errorf("table name %q is not valid UTF-8", t.String())
	}
	for _, r := range t.Namespace {
		if !isWordRune(r) {
			return fmt.Errorf("table name %q: character %q is not allowed in a name space", t.String(), string(r))
		}
	}
	for i, r := range t.Qualifier {
		if isWordRune(r) || (i > 0 && (r == '-' || r == '.')) {
			continue
		}
		return fmt.Errorf("table name %q: character %q is not allowed at position %d of the qualifier", t.String(), string(r), i)
	}
	return nil
}

// String gives HBase's own form: "qualifier" in the default name space, else
// "namespace:qualifier".
func (t TableName) String() string {
	if t.Namespace == DefaultNamespace || t.Namespace == "" {
		return t.Qualifier
	}
	return t.Namespace + ":" + t.Qualifier
}

// IsZero reports whether t names no table.
func (t TableName) IsZero() bool { return t == TableName{} }

// IsSystem reports whether the table belongs to HBase itself.
func (t TableName) IsSystem() bool { return t.Namespace == SystemNamespace }

// Path gives the two path segments HBase uses for the table: "namespace/qualifier".
func (t TableName) Path() string { return t.Namespace + "/" + t.Qualifier }

// Compare orders names by name space, then qualifier.
func (t TableName) Compare(o TableName) int {
	if c := strings.Compare(t.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(t.Qualifier, o.Qualifier)
}

// MarshalText writes the fully qualified form, with "default:" spelled out, so
// that JSON never depends on a convention.
func (t TableName) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return []byte(t.Namespace + ":" + t.Qualifier), nil
}

// UnmarshalText accepts both forms of ParseTableName.
func (t *TableName) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*t = TableName{}
		return nil
	}
	parsed, err := ParseTableName(string(b))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// EncodedRegion is HBase's 32-hex-digit name of a region (the MD5 of its full name).
type EncodedRegion string

// Validate reports whether the value has the form of an encoded region name.
func (r EncodedRegion) Validate() error {
	if len(r) != 32 {
		return fmt.Errorf("encoded region name %q is not 32 characters long", string(r))
	}
	for i := 0; i < len(r); i++ {
		if b := r[i]; !(b >= '0' && b <= '9' || b >= 'a' && b <= 'f') {
			return fmt.Errorf("encoded region name %q is not lower-case hexadecimal", string(r))
		}
	}
	return nil
}

// Family is a column family name. HBase allows any printable characters except
// control characters and ':', and no leading '.', so it is checked before it
// becomes a path segment.
type Family string

// Validate reports why HBase would refuse the family, or why it is no safe path segment.
func (f Family) Validate() error {
	switch {
	case f == "":
		return fmt.Errorf("the column family name is empty")
	case !utf8.ValidString(string(f)):
		return fmt.Errorf("column family %q is not valid UTF-8", string(f))
	case f[0] == '.':
		return fmt.Errorf("column family %q starts with a period", string(f))
	case f == "recovered.edits":
		return fmt.Errorf("column family %q is reserved by HBase", string(f))
	}
	for _, r := range string(f) {
		if unicode.IsControl(r) || r == ':' || r == '/' || r == '\\' {
			return fmt.Errorf("column family %q: character %q is not allowed", string(f), string(r))
		}
	}
	return nil
}

func isAlnum(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}
