package hbackup

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// FirstTables writes the first n names, for messages, and how many more there are.
func FirstTables(tables []TableName, n int) string {
	var names []string
	for _, t := range tables[:min(n, len(tables))] {
		names = append(names, t.String())
	}
	if more := len(tables) - n; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// TablePattern chooses tables by name. '*' stands for any characters, '?' for
// one: "ns:orders", "ns:log_*", "ns:*". One without a name space is about the
// default one, as a table name is, except "*" alone, which means all tables.
type TablePattern string

// allTables is the pattern for every table of every name space.
const allTables TablePattern = "*"

// Validate reports why the pattern cannot be used: it could match no table name.
func (p TablePattern) Validate() error {
	ns, qualifier := p.parts()
	switch {
	case p == "":
		return fmt.Errorf("the table pattern is empty")
	case !utf8.ValidString(string(p)):
		return fmt.Errorf("table pattern %q is not valid UTF-8", string(p))
	case ns == "" || qualifier == "":
		return fmt.Errorf("table pattern %q: write name-space:table", string(p))
	case ns == SystemNamespace:
		return fmt.Errorf("table pattern %q: tables of the name space %q are HBase's own and cannot be restored elsewhere", string(p), SystemNamespace)
	}
	for _, r := range ns {
		if !isWordRune(r) && r != '*' && r != '?' {
			return fmt.Errorf("table pattern %q: character %q is not allowed in a name space", string(p), string(r))
		}
	}
	for i, r := range qualifier {
		if isWordRune(r) || r == '*' || r == '?' || i > 0 && (r == '-' || r == '.') {
			continue
		}
		return fmt.Errorf("table pattern %q: character %q is not allowed at position %d of a table's name", string(p), string(r), i)
	}
	return nil
}

// Matches reports whether the pattern chooses the table. HBase's own tables are
// chosen by none.
func (p TablePattern) Matches(t TableName) bool {
	ns, qualifier := p.parts()
	return !t.IsSystem() && matches(ns, t.Namespace) && matches(qualifier, t.Qualifier)
}

func (p TablePattern) parts() (ns, qualifier string) {
	if p == allTables {
		return "*", "*"
	}
	if ns, qualifier, found := strings.Cut(string(p), ":"); found {
		return ns, qualifier
	}
	return DefaultNamespace, string(p)
}

func matches(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// Selection chooses the tables of a run: those that a pattern of Include matches
// and none of Exclude does. What it comes to depends on the tables that exist.
type Selection struct {
	Set     string         `json:"set,omitempty"` // its name in the configuration; the cluster's own has none
	Include []TablePattern `json:"include"`
	Exclude []TablePattern `json:"exclude,omitempty"`
}

// Of gives the chosen tables, ordered by name.
func (s Selection) Of(all []TableName) []TableName {
	var out []TableName
	for _, t := range all {
		if slices.ContainsFunc(s.Include, t.matchedBy) && !slices.ContainsFunc(s.Exclude, t.matchedBy) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, TableName.Compare)
	return slices.Compact(out)
}

func (t TableName) matchedBy(p TablePattern) bool { return p.Matches(t) }

// Equal reports whether both choose by the same name and patterns.
func (s Selection) Equal(o Selection) bool {
	return s.Set == o.Set && slices.Equal(s.Include, o.Include) && slices.Equal(s.Exclude, o.Exclude)
}

// Validate reports the first pattern that cannot be used.
func (s Selection) Validate() error {
	if len(s.Include) == 0 {
		return fmt.Errorf("the selection includes no pattern")
	}
	for _, p := range slices.Concat(s.Include, s.Exclude) {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// String names the selection in messages.
func (s Selection) String() string {
	if s.Set != "" {
		return "the set " + s.Set
	}
	var b strings.Builder
	for i, p := range s.Include {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(p))
	}
	for i, p := range s.Exclude {
		if i == 0 {
			b.WriteString(" without ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(string(p))
	}
	return b.String()
}
