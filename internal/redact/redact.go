// Package redact keeps secrets out of messages. It is a net below the rule that
// secrets are passed by reference and never formatted.
package redact

import (
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mask stands where a secret was.
const Mask = "(redacted)"

// minLength keeps short values from blanking out ordinary words.
const minLength = 6

// Secrets are the values that must not show. The zero value knows none, but
// still masks what looks like one. It may be used by many goroutines.
type Secrets struct {
	mu     sync.RWMutex
	values []string // longest first, so that a part does not unmask the rest
}

// Add makes value unprintable. Values too short to be secrets are left alone.
func (s *Secrets) Add(value string) {
	if len(value) < minLength {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.values, value) {
		s.values = append(s.values, value)
		slices.SortFunc(s.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
}

// looksSecret finds passwords in addresses and signatures in query strings.
var looksSecret = []*regexp.Regexp{
	regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+(@)`),
	regexp.MustCompile(`(?i)((?:X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|Signature|access_token|delegation)=)[^&\s"']+()`),
	regexp.MustCompile(`(?i)(Authorization:?\s+(?:Bearer|Basic|Negotiate|AWS4-HMAC-SHA256)\s+)[^\s"']+()`),
}

// Text gives s without secrets.
func (s *Secrets) Text(text string) string {
	s.mu.RLock()
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, Mask)
	}
	s.mu.RUnlock()
	for _, re := range looksSecret {
		text = re.ReplaceAllString(text, "${1}"+Mask+"${2}")
	}
	return text
}

// secretKeys are names of attributes whose values are never shown.
var secretKeys = regexp.MustCompile(`(?i)(secret|password|passwd|token|authorization|signature)`)

// Handler passes records on without secrets.
func (s *Secrets) Handler(next slog.Handler) slog.Handler { return handler{next, s} }

type handler struct {
	next    slog.Handler
	secrets *Secrets
}

func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.secrets.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return handler{h.next.WithAttrs(clean), h.secrets}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.next.WithGroup(name), h.secrets}
}

// attr cleans one attribute. Numbers, times and booleans hold no secrets; all
// else is shown as its cleaned text.
func (h handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = h.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	case secretKeys.MatchString(a.Key):
		return slog.String(a.Key, Mask)
	case v.Kind() == slog.KindString, v.Kind() == slog.KindAny:
		return slog.String(a.Key, h.secrets.Text(v.String()))
	}
	return slog.Attr{Key: a.Key, Value: v}
}
