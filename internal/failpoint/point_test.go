package failpoint

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPointIsReachedOnce(t *testing.T) {
	for _, c := range []struct {
		text string
		hits string // one letter a hit: the step
		want int    // which of the hits it is; -1: none
	}{
		{"a", "ba", 1},
		{"a#1", "aa", 0},
		{"a#3", "abaabaa", 3},
		{"a#3", "aa", -1},
		{"", "ab", -1},
	} {
		p, err := parsePoint(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got := -1
		for i, s := range c.hits {
			if p.reached(Step(s)) {
				if got >= 0 {
					t.Errorf("%q is reached at hits %d and %d of %q", c.text, got, i, c.hits)
				}
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%q is reached at hit %d of %q, want %d", c.text, got, c.hits, c.want)
		}
	}
}

func TestBadTexts(t *testing.T) {
	for _, s := range []string{"a#", "a#x", "a#0", "a#-1", "#1"} {
		if p, err := parsePoint(s); err == nil {
			t.Errorf("point %q is taken: %s#%d", s, p.step, p.nth)
		}
	}
	for _, s := range []string{"a", "a:", ":/x", "a#x:/x"} {
		if g, err := parseGate(s); err == nil {
			t.Errorf("gate %q is taken: %s %s", s, g.step, g.file)
		}
	}
}

// TestGate passes a gate only when its file is there, and shows that it waits.
func TestGate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go")
	g, err := parseGate("a#2:" + file)
	if err != nil {
		t.Fatal(err)
	}
	if g.reached("a") || !g.reached("a") {
		t.Fatal("the gate is not at the second hit")
	}
	passed := make(chan error, 1)
	go func() { passed <- g.wait() }()
	for {
		if _, err := os.Stat(file + waiting); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-passed:
		t.Fatalf("the gate was passed without its file: %v", err)
	default:
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file + waiting); !os.IsNotExist(err) {
		t.Errorf("the sign of waiting is still there: %v", err)
	}
}
