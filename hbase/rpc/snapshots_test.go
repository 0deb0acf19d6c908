package rpc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// bothFlows runs a test against a master with and without snapshot procedures.
func bothFlows(t *testing.T, test func(*testing.T, *model, *Client)) {
	for name, zk := range map[string]bool{"procedure": false, "zookeeper": true} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			m := newModel(t)
			m.with(func() {
				m.zkFlow = zk
				m.tables["ns:t"] = &modelTable{hbpb.TableState_ENABLED, "now"}
			})
			test(t, m, connect(t, nil, m.fakeServer))
		})
	}
}

func TestSnapshot(t *testing.T) {
	bothFlows(t, func(t *testing.T, m *model, c *Client) {
		if err := c.Snapshot(t.Context(), SnapshotRequest{Name: "s", Table: tbl}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Snapshots(t.Context())
		if err != nil || len(got) != 1 || got[0].Name != "s" || got[0].Table != tbl {
			t.Fatalf("%v, %v", got, err)
		}
		wantKind(t, c.Snapshot(t.Context(), SnapshotRequest{Name: "s", Table: tbl}), hbackup.KindExists)
		wantKind(t, c.Snapshot(t.Context(), SnapshotRequest{Name: "s2", Table: mustTable("none")}), hbackup.KindNotFound)
	})
}

func TestSnapshotWaitsForAnother(t *testing.T) {
	bothFlows(t, func(t *testing.T, m *model, c *Client) {
		m.with(func() { m.busy = 3 })
		if err := c.Snapshot(t.Context(), SnapshotRequest{Name: "s", Table: tbl}); err != nil {
			t.Fatal(err)
		}
		m.with(func() { m.busy = 1 << 30 })
		c.cfg.BusyFor = 30 * time.Millisecond
		wantKind(t, c.Snapshot(t.Context(), SnapshotRequest{Name: "s2", Table: tbl}), hbackup.KindBusy)
	})
}

// A snapshot that fails on the way is tried again, with another nonce, and a
// job that starts over comes to the same nonces.
func TestSnapshotFailsOnTheWay(t *testing.T) {
	bothFlows(t, func(t *testing.T, m *model, c *Client) {
		nonce := NewNonce()
		m.with(func() { m.flaws = 2 })
		if err := c.Snapshot(t.Context(), SnapshotRequest{Name: "s", Table: tbl, Nonce: nonce}); err != nil {
			t.Fatal(err)
		}
		m.with(func() {
			for i, n := range m.nonces {
				if n != nonce.attempt(i) {
					t.Errorf("send %d has nonce %v", i, n)
				}
			}
			m.flaws = 3
		})
		err := c.Snapshot(t.Context(), SnapshotRequest{Name: "s2", Table: tbl})
		if err == nil || !strings.Contains(err.Error(), "a region moved") {
			t.Fatal(err)
		}
		m.with(func() {
			if m.flaws != 0 {
				t.Errorf("%d flaws left", m.flaws)
			}
		})
	})
}

// Whatever call or answer gets lost: one snapshot, and no error.
func TestSnapshotLosses(t *testing.T) {
	bothFlows(t, func(t *testing.T, m *model, c *Client) {
		zk := m.zkFlow
		n := 0
		rapid.Check(t, func(t *rapid.T) {
			m.with(func() {
				clear(m.running)
				m.zkFlow = zk
				// One less than what counts as an address of another kind of server.
				lost := rapid.SliceOfN(rapid.SampledFrom([]string{"", "before", "after"}), 0, maxBareCloses-1).Draw(t, "losses")
				m.lose = func(string) string {
					if len(lost) == 0 {
						return ""
					}
					next := lost[0]
					lost = lost[1:]
					return next
				}
			})
			n++
			name := fmt.Sprint("s", n)
			if err := c.Snapshot(context.Background(), SnapshotRequest{Name: name, Table: tbl}); err != nil {
				t.Fatal(err)
			}
			m.with(func() {
				if m.of[name] != "ns:t" || len(m.running) != 0 {
					t.Fatalf("snapshots %v, running %v", m.of, m.running)
				}
				m.lose = func(string) string { return "" }
			})
		})
	})
}

func TestSnapshotNames(t *testing.T) {
	for name, good := range map[string]bool{
		"s": true, "_": true, "A-b.c_9": true, strings.Repeat("x", maxName): true,
		"": false, "-a": false, ".a": false, "a/b": false, "a b": false, "a:b": false, "ä": false, "a\x00": false,
		"a\n": false, "..": false, strings.Repeat("x", maxName+1): false,
	} {
		if err := checkSnapshot("op", name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	for id, good := range map[string]bool{"p": true, "a_b.c": true, "a-b": false, "": false, "a/b": false} {
		if err := checkPeer("op", id); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
	for ns, good := range map[string]bool{"n_1": true, "": false, "a-b": false, "a:b": false, "a.b": false} {
		if err := checkNamespace("op", ns); (err == nil) != good {
			t.Errorf("%q: %v", ns, err)
		}
	}
	bad := SnapshotRequest{Name: "s", Table: tbl, TTL: 1500 * time.Millisecond}
	wantKind(t, bad.validate("op"), hbackup.KindUsage)
}
