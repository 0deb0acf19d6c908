package hbackup

import (
	"fmt"
	"time"
)

// FormatTime gives the one form in which times are written: RFC 3339, UTC,
// milliseconds, "2026-11-30T23:05:01.123Z". The zero time is "".
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// ParseTime reads a moment. A zone is required: a time without one would mean
// different moments on different machines.
func ParseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC(), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if _, err := time.Parse(layout, s); err == nil {
			return time.Time{}, Errorf("read time", s, KindUsage, "the time has no zone").
				WithHint("write it as 2026-11-30T23:05:01Z or 2026-11-30T23:05:01+01:00")
		}
	}
	return time.Time{}, Errorf("read time", s, KindUsage, "%q is not an RFC 3339 time", s).
		WithHint("write it as 2026-11-30T23:05:01Z or 2026-11-30T23:05:01+01:00")
}

// FromMillis turns HBase's milliseconds since 1970 into a UTC time; 0 is the zero time.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// FormatDuration gives a short form for people: 1h12m, 3m4s, 12.3s, 45ms.
func FormatDuration(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
