package ui

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB",
		10 << 30: "10.0 GiB", 1 << 40: "1.0 TiB", math.MaxInt64: "8.0 EiB", -1536: "-1.5 KiB", math.MinInt64: "-4.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestBytesHasOneForm(t *testing.T) {
	form := regexp.MustCompile(`^(\d{1,4} B|\d{1,4}\.\d [KMGTPE]iB)$`)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		if s := Bytes(n); !form.MatchString(s) || strings.HasPrefix(s, "1024") {
			t.Fatalf("%d is %q", n, s)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	if Plural(1, "file", "files") != "1 file" || Plural(2000, "file", "files") != "2,000 files" {
		t.Error("Plural")
	}
}

func TestTime(t *testing.T) {
	now := time.Date(2026, 11, 30, 23, 5, 1, 0, time.FixedZone("", 3600))
	for ago, want := range map[time.Duration]string{
		0:                            "2026-11-30 22:05:01Z (now)",
		500 * time.Millisecond:       "2026-11-30 22:05:00Z (now)",
		42 * time.Second:             "2026-11-30 22:04:19Z (42s ago)",
		3*time.Hour + 12*time.Minute: "2026-11-30 18:53:01Z (3h12m ago)",
		50 * time.Hour:               "2026-11-28 20:05:01Z (2d02h ago)",
		-90 * time.Second:            "2026-11-30 22:06:31Z (in 1m30s)",
	} {
		if got := Time(now.Add(-ago), now); got != want {
			t.Errorf("%s ago: %q, want %q", ago, got, want)
		}
	}
	if got := Time(time.Time{}, now); got != "-" {
		t.Errorf("zero time: %q", got)
	}
}

func TestOneLineIsSafe(t *testing.T) {
	if got := OneLine(" a\nb\t\x1b[31mc\u202ed\xff "); got != "a b [31mc d�" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := OneLine(rapid.String().Draw(t, "s"))
		if strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, "  ") || s != strings.TrimSpace(s) {
			t.Fatalf("%q", s)
		}
	})
}
