// Package ui writes what people and programs read: tables with aligned columns,
// JSON documents and lines, and the progress of a running verb. It decides
// nothing; only the command line uses it.
package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hbackup"
)

// Bytes gives a size in IEC units with one decimal: "1.5 GiB"; below 1 KiB "512 B".
func Bytes(n int64) string {
	if n < 0 {
		return "-" + Bytes(-max(n, -1<<62))
	}
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 6 {
		value /= 1024
		unit++
	}
	if value >= 1023.95 && unit < 6 { // would be written as 1024.0
		value /= 1024
		unit++
	}
	var room [16]byte
	b := strconv.AppendFloat(room[:0], value, 'f', 1, 64)
	return string(append(b, ' ', "KMGTPE"[unit-1], 'i', 'B'))
}

// Count gives a number with a comma between thousands: "1,234,567".
func Count[T ~int | ~int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// Plural gives "1 file" or "2,000 files".
func Plural[T ~int | ~int64](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Time gives a moment in UTC to the second and how long ago it was:
// "2026-11-30 23:05:01Z (3h12m ago)". The zero time is "-".
func Time(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	var room [64]byte
	b := t.UTC().AppendFormat(room[:0], "2006-01-02 15:04:05Z")
	b = append(append(b, " ("...), Age(t, now)...)
	return string(append(b, ')'))
}

// Age says how long ago t was, or how far ahead it is.
func Age(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < 0 && d > -time.Second, d >= 0 && d < time.Second:
		return "now"
	case d < 0:
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span is coarser than hbackup.FormatDuration: an age needs no milliseconds.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		hours := int64(d % day / time.Hour)
		return strconv.FormatInt(int64(d/day), 10) + "d" + string([]byte{'0' + byte(hours/10), '0' + byte(hours%10)}) + "h"
	case d >= time.Minute:
		return hbackup.FormatDuration(d)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// OneLine makes outside text safe for a terminal and a log: control characters
// and line ends become spaces, runs of spaces one.
func OneLine(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	return strings.Join(strings.Fields(s), " ")
}

// isPlain reports whether a text is one safe line as it is: printable ASCII, with
// single spaces between words.
func isPlain(s string) bool {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' ' || s == ""
}
