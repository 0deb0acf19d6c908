package rpc

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"
)

func TestCloneAndRestore(t *testing.T) {
	noLeaks(t)
	m := newModel(t)
	c := connect(t, nil, m.fakeServer)
	ctx := t.Context()
	m.with(func() {
		m.tables["ns:t"] = &modelTable{hbpb.TableState_DISABLED, "now"}
		m.tables["ns:other"] = &modelTable{hbpb.TableState_DISABLED, "other"}
		m.snapshots["s"], m.of["s"] = modelTable{content: "then"}, "ns:t"
	})
	content := func(table string) (s string) {
		m.with(func() {
			if t := m.tables[table]; t != nil {
				s = t.content
			}
		})
		return s
	}
	wantKind(t, c.Clone(ctx, CloneRequest{Snapshot: "s", Target: mustTable("ns:other")}), hbackup.KindExists)
	wantKind(t, c.Clone(ctx, CloneRequest{Snapshot: "s", Target: mustTable("ns:other"), Nonce: NewNonce(), Sent: true}), hbackup.KindConflict)
	wantKind(t, c.Clone(ctx, CloneRequest{Snapshot: "none", Target: mustTable("ns:new")}), hbackup.KindNotFound)
	wantKind(t, c.Restore(ctx, RestoreRequest{Snapshot: SnapshotInfo{Name: "s", Table: mustTable("ns:other")}}), hbackup.KindRefused)
	wantKind(t, c.Restore(ctx, RestoreRequest{Snapshot: SnapshotInfo{Name: "none", Table: tbl}}), hbackup.KindNotFound)
	m.with(func() {
		if n := m.sent["RestoreSnapshot"]; n != 0 {
			t.Errorf("sent %d times", n)
		}
	})
	if err := c.Clone(ctx, CloneRequest{Snapshot: "s", Target: mustTable("ns:new")}); err != nil || content("ns:new") != "then" || content("ns:t") != "now" {
		t.Fatal(err, content("ns:new"), content("ns:t"))
	}
	if err := c.Restore(ctx, RestoreRequest{Snapshot: SnapshotInfo{Name: "s", Table: tbl}}); err != nil || content("ns:t") != "then" {
		t.Fatal(err, content("ns:t"))
	}
	m.with(func() { m.tables["ns:t"].state = hbpb.TableState_ENABLED })
	wantKind(t, c.Restore(ctx, RestoreRequest{Snapshot: SnapshotInfo{Name: "s", Table: tbl}}), hbackup.KindConflict)
	m.with(func() { delete(m.tables, "ns:t") })
	wantKind(t, c.Restore(ctx, RestoreRequest{Snapshot: SnapshotInfo{Name: "s", Table: tbl}}), hbackup.KindNotFound)
}

// TestCloneNeverRewinds: whatever gets lost, whatever the master has forgotten,
// and whether or not the caller repeats an earlier request, Clone changes no
// table that is there, and says "done" only when the target is the snapshot's.
func TestCloneNeverRewinds(t *testing.T) {
	noLeaks(t)
	m := newModel(t)
	c := connect(t, nil, m.fakeServer)
	states := []hbpb.TableState_State{hbpb.TableState_ENABLED, hbpb.TableState_DISABLED, hbpb.TableState_DISABLING, hbpb.TableState_ENABLING}
	rapid.Check(t, func(t *rapid.T) {
		m.reset()
		nonce := NewNonce()
		request := CloneRequest{Snapshot: "s", Nonce: nonce, Target: mustTable(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "target"))}
		m.with(func() {
			m.snapshots["s"], m.of["s"] = modelTable{content: "then"}, "a"
			for _, name := range []string{"a", "b"} {
				if rapid.Bool().Draw(t, name+" exists") {
					m.tables[name] = &modelTable{rapid.SampledFrom(states).Draw(t, "state"), "now " + name}
				}
			}
		})
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			lost := rapid.SliceOfN(rapid.SampledFrom([]string{"", "before", "after"}), 0, maxBareCloses-1).Draw(t, "losses")
			var before map[string]string
			var safe bool // nothing is in the way, and asking twice can do no harm
			m.with(func() {
				m.lose = func(method string) string {
					if method != "RestoreSnapshot" || len(lost) == 0 {
						return ""
					}
					next := lost[0]
					lost = lost[1:]
					return next
				}
				if rapid.Bool().Draw(t, "forgotten") {
					clear(m.byNonce)
					clear(m.procs)
				}
				stored := m.tables["a"]
				safe = m.tables[request.Target.String()] == nil &&
					(stored == nil || stored.state == hbpb.TableState_ENABLED || stored.state == hbpb.TableState_ENABLING)
				before = map[string]string{}
				for name, table := range m.tables {
					before[name] = table.content
				}
			})
			err := c.Clone(context.Background(), request)
			m.with(func() {
				for name, content := range before {
					if m.tables[name].content != content {
						t.Fatalf("table %s was rewound from %q to %q", name, content, m.tables[name].content)
					}
				}
				target := m.tables[request.Target.String()]
				if err == nil && (target == nil || target.content != "then") {
					t.Fatalf("done, but the target is %+v", target)
				}
				m.lose = func(string) string { return "" }
			})
			if err != nil && safe {
				t.Fatal(err)
			}
			if err != nil && !hbackup.IsKind(err, hbackup.KindExists, hbackup.KindConflict) {
				t.Fatal(err)
			}
			request.Sent = true
		}
	})
}
