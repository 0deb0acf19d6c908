package main

import (
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
)

// A location is found by its id under whatever name the configuration has it, also
// when the cluster's history does not mention it any more.
func TestALocationIsFoundByItsID(t *testing.T) {
	main, old, spare := marked(t, "main"), marked(t, "old"), marked(t, "spare")
	w, cl, _ := realWorld(t, main, old)
	w.cfg.Locations["spare"] = &config.Location{Name: "spare"}
	w.stores["spare"] = spare
	for name, s := range map[string]*mem.Store{"main": main, "old": old, "spare": spare} {
		m, err := catalog.ReadMarker(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.elsewhere(cl)(t.Context(), m.ID)
		if err != nil || p.Name != name || p.LocationID != m.ID || !strings.HasSuffix(string(p.Store.Location()), name+"/prod") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	const unknown = "00000000000000000000000000000000"
	if _, err := w.elsewhere(cl)(t.Context(), unknown); !hbackup.IsKind(err, hbackup.KindNotFound) || !strings.Contains(err.Error(), unknown) {
		t.Errorf("got %v", err)
	}
	// One that cannot be asked may be it.
	bad, err := faulty.New(old, "get#*:fail=unavailable")
	if err != nil {
		t.Fatal(err)
	}
	w.stores["old"] = bad
	if _, err := w.elsewhere(cl)(t.Context(), unknown); !hbackup.IsKind(err, hbackup.KindUnavailable) || !strings.Contains(err.Error(), "old") {
		t.Errorf("got %v", err)
	}
}
