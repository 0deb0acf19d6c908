package storetest

import (
	"strings"
	"time"

	"hbackup/storage"
)

func serverTime(e *env) {
	before := time.Now()
	first, err := e.s.ServerTime(e.ctx)
	if err != nil {
		e.Fatalf("ServerTime: %v", err)
	}
	if first.Before(before.Add(-e.o.clockSkew)) || first.After(time.Now().Add(e.o.clockSkew)) {
		e.Fatalf("the store's clock says %v, this machine's %v", first, before)
	}
	second, err := e.s.ServerTime(e.ctx)
	if err != nil {
		e.Fatalf("ServerTime: %v", err)
	}
	if second.Before(first) {
		e.Fatalf("the store's clock went from %v back to %v", first, second)
	}
	e.lists("", storage.ListOptions{}) // asking for the time leaves nothing behind
}

func location(e *env) {
	loc := string(e.s.Location())
	scheme, rest, ok := strings.Cut(loc, "://")
	if !ok || scheme == "" || rest == "" || strings.HasSuffix(loc, "/") || strings.Contains(rest, "@") {
		e.Fatalf("the location %q is not a fully qualified place", loc)
	}
	caps := e.s.Capabilities()
	if caps.MaxKeyBytes < 0 || caps.BatchDelete < 0 || caps.MaxKeyBytes > 0 && caps.MaxKeyBytes < 800 {
		e.Fatalf("the capabilities %+v cannot be", caps)
	}
}
