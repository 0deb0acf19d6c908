package storetest_test

import (
	"log/slog"
	"maps"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/faulty"
	"hbackup/storage/limit"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
	"hbackup/storage/prefixed"
	"hbackup/storage/readonly"
	"hbackup/storage/retry"
	"hbackup/storage/trace"
)

// Wrappers give what the store inside can do beyond the contract: they hide
// nothing and invent nothing, however many there are. For reading only means no
// held uploads, but what becomes of deleted objects may be asked.
func TestWrappersHideAndInventNothing(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	wrappers := map[string]func(storage.Store) storage.Store{
		"concurrency": func(s storage.Store) storage.Store { return concurrency.New(s, 4) },
		"faulty": func(s storage.Store) storage.Store {
			f, err := faulty.New(s, "")
			if err != nil {
				t.Fatal(err)
			}
			return f
		},
		"limit":    func(s storage.Store) storage.Store { return limit.New(s, limit.Rates{Upload: 1 << 30}) },
		"metered":  func(s storage.Store) storage.Store { return metered.New(s) },
		"prefixed": func(s storage.Store) storage.Store { return prefixed.New(s, "part") },
		"retry":    func(s storage.Store) storage.Store { return retry.New(s, retry.Options{}) },
		"trace":    func(s storage.Store) storage.Store { return trace.New(s, log) },
	}
	single := maps.Clone(wrappers)
	wrappers["all of them"] = func(s storage.Store) storage.Store {
		for _, wrap := range single {
			s = wrap(s)
		}
		return s
	}
	for name, wrap := range wrappers {
		full, bare := wrap(mem.New("full", mem.WithPermanence(storage.Versioned))), wrap(plain{mem.New("bare")})
		h, ok := storage.HolderOf(full)
		if !ok {
			t.Errorf("%s hides that the store holds uploads", name)
		} else if ticket, err := h.OpenUpload(t.Context(), "a", "STAMP"); err != nil || ticket.Key != "a" {
			t.Errorf("%s: %+v, %v", name, ticket, err)
		}
		if _, ok := storage.HolderOf(bare); ok {
			t.Errorf("%s invents held uploads", name)
		}
		if p, _, err := storage.PermanenceOf(t.Context(), full); p != storage.Versioned || err != nil {
			t.Errorf("%s: %s, %v", name, p, err)
		}
		if p, _, err := storage.PermanenceOf(t.Context(), bare); p != storage.Deletable || err != nil {
			t.Errorf("%s: %s, %v", name, p, err)
		}
		if got, want := full.Capabilities().BatchDelete, mem.New("x").Capabilities().BatchDelete; got != want {
			t.Errorf("%s: deletes %d keys with a request; want %d", name, got, want)
		}
		closed := readonly.New(full)
		if _, ok := storage.HolderOf(closed); ok {
			t.Errorf("readonly shows the held uploads of %s", name)
		}
		if p, _, err := storage.PermanenceOf(t.Context(), closed); p != storage.Versioned || err != nil {
			t.Errorf("readonly around %s: %s, %v", name, p, err)
		}
		if _, err := storage.PutBytes(t.Context(), closed, "b", nil, true); !hbackup.IsKind(err, hbackup.KindReadOnly) {
			t.Errorf("readonly around %s: %v", name, err)
		}
	}
}

// What a store says of its place is found behind wrappers that leave names and
// contents as they are, and not behind others.
func TestAsLooksBehindWrappers(t *testing.T) {
	inner := speaker{mem.New("test")}
	same := trace.New(retry.New(concurrency.New(limit.New(metered.New(inner), limit.Rates{}), 1), retry.Options{}), slog.New(slog.DiscardHandler))
	if got, ok := storage.As[interface{ Speak() string }](same); !ok || got.Speak() != "here" {
		t.Errorf("got %v, %v", got, ok)
	}
	for what, s := range map[string]storage.Store{"a part": prefixed.New(inner, "part"), "a mute store": trace.New(mem.New("x"), nil)} {
		if got, ok := storage.As[interface{ Speak() string }](s); ok {
			t.Errorf("%s speaks: %v", what, got)
		}
	}
}

type speaker struct{ storage.Store }

func (speaker) Speak() string { return "here" }

// plain is a store that can do nothing beyond the contract.
type plain struct{ storage.Store }
