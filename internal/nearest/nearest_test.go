package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTo(t *testing.T) {
	keys := []string{"registry", "root", "wal", "user", "target", "history"}
	for word, want := range map[string]string{
		"targt":    "target",
		"Target":   "target",
		"tagret":   "target",
		"hist":     "history",
		"usr":      "user",
		"registri": "registry",
		"banana":   "",
		"":         "",
		"x":        "",
	} {
		if got := To(word, keys); got != want {
			t.Errorf("To(%q) = %q, want %q", word, got, want)
		}
	}
	if got := To("foo", []string{"log"}); got != "" {
		t.Errorf("foo is near to %q", got)
	}
	if got := To("warning", []string{"debug", "info", "warn", "error"}); got != "warn" {
		t.Errorf("warning is near to %q", got)
	}
	if got := To("create-namespaces", []string{"create_namespace"}); got != "create_namespace" {
		t.Errorf("dashes count as different: %q", got)
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("abc")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("not symmetric")
		}
		if (d == 0) != (a == b) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
		if longer := max(len(a), len(b)); d > longer {
			t.Fatalf("%d is more than the longer word's %d", d, longer)
		}
		if diff := max(len(a)-len(b), len(b)-len(a)); d < diff {
			t.Fatalf("%d is less than the difference in length %d", d, diff)
		}
	})
}
