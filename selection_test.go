package hbackup

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPatternMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, table string
		want           bool
	}{
		{"*", "orders", true}, {"*", "ns:orders", true}, {"*", "hbase:meta", false},
		{"orders", "orders", true}, {"orders", "ns:orders", false}, {"orders", "orders2", false},
		{"ord*", "orders", true}, {"ord*", "ns:orders", false}, {"default:ord*", "orders", true},
		{"ns:*", "ns:orders", true}, {"ns:*", "ns2:orders", false}, {"n*:o?ders", "ns2:orders", true},
		{"*:orders", "orders", true}, {"*:meta", "hbase:meta", false}, {"ns:a.b-c", "ns:a.b-c", true}, {"ns:a?b", "ns:aäb", true},
	} {
		p := TablePattern(c.pattern)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", c.pattern, err)
		}
		table, err := ParseTableName(c.table)
		if err != nil {
			t.Fatal(err)
		}
		if p.Matches(table) != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.table, !c.want)
		}
	}
	for _, bad := range []string{"", ":", "ns:", ":t", "a:b:c", "ns:[a]", `ns:\*`, "ns:a/b", "n-s:a", "ns:.a", "hbase:*", "hbase:meta", "\xff", "ns: a"} {
		if TablePattern(bad).Validate() == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The selection is what regular expressions of the same meaning give, table by table.
func TestSelection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(letters string) string {
		b := make([]byte, 1+r.IntN(3))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	model := func(p TablePattern) *regexp.Regexp {
		s := string(p)
		if s == "*" {
			s = "*:*"
		} else if !strings.Contains(s, ":") {
			s = "default:" + s
		}
		return regexp.MustCompile("^" + strings.NewReplacer(`\*`, "[^:]*", `\?`, "[^:]").Replace(regexp.QuoteMeta(s)) + "$")
	}
	for range 5000 {
		pattern := func() TablePattern {
			switch r.IntN(4) {
			case 0:
				return TablePattern(word("ab*?"))
			case 1:
				return TablePattern(word("ab*") + ":" + word("ab"))
			}
			return TablePattern(word("ab*?") + ":" + word("ab*?"))
		}
		var s Selection
		for range 1 + r.IntN(3) {
			s.Include = append(s.Include, pattern())
		}
		for range r.IntN(3) {
			s.Exclude = append(s.Exclude, pattern())
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		var all, want []TableName
		for range 10 {
			name := TableName{Namespace: []string{DefaultNamespace, SystemNamespace, word("ab")}[r.IntN(3)], Qualifier: word("ab")}
			all = append(all, name)
			any := func(list []TablePattern) bool {
				return slices.ContainsFunc(list, func(p TablePattern) bool {
					return model(p).MatchString(name.Namespace + ":" + name.Qualifier)
				})
			}
			if !name.IsSystem() && any(s.Include) && !any(s.Exclude) {
				want = append(want, name)
			}
		}
		slices.SortFunc(want, TableName.Compare)
		want = slices.Compact(want)
		if got := s.Of(all); !slices.Equal(got, want) {
			t.Fatalf("%s of %v gives %v, not %v", s, all, got, want)
		}
	}
}
