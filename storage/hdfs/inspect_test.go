package hdfs

import (
	"context"
	"strings"
	"testing"

	"hbackup"
	"hbackup/check"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
)

var _ check.Inspector = (*Store)(nil)

// telling is a fake that says of itself what a test wants.
type telling struct {
	*fake
	facts client.Facts
	err   error
}

func (f telling) Facts(context.Context, string) (client.Facts, error) { return f.facts, f.err }

func TestInspect(t *testing.T) {
	well := client.Facts{Capacity: 100 << 30, Remaining: 50 << 30, Replication: 3}
	for name, c := range map[string]struct {
		change      func(*client.Facts)
		replication int
		item        string
		verdict     storage.Verdict
		says        string
	}{
		"well":               {nil, 0, "free space", storage.Fine, "50.0 GiB of 100.0 GiB"},
		"replication":        {nil, 0, "replication", storage.Fine, "file: 3, as the name node says"},
		"one replica":        {func(f *client.Facts) { f.Replication = 1 }, 0, "replication", storage.Caution, "name node"},
		"two are configured": {func(f *client.Facts) { f.Replication = 1 }, 2, "replication", storage.Fine, "configuration"},
		"little room":        {func(f *client.Facts) { f.Remaining = 1 << 30 }, 0, "free space", storage.Caution, "1.0 GiB"},
		"no room":            {func(f *client.Facts) { f.Remaining = 0 }, 0, "free space", storage.Harmful, "0.0 GiB"},
		"no quotas":          {nil, 0, "quotas", storage.Fine, "none"},
		"names used up":      {func(f *client.Facts) { f.NameQuota, f.Names = 10, 12 }, 0, "quota of names", storage.Harmful, "0 files"},
		"space nearly":       {func(f *client.Facts) { f.SpaceQuota, f.SpaceUsed = 100<<30, 99<<30 }, 0, "quota of space", storage.Caution, "1.0 GiB of"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := well
			if c.change != nil {
				c.change(&facts)
			}
			s := open(telling{newFake(), facts, nil}, storage.Place{Scheme: storage.SchemeHDFS, Host: "nn:8020", Path: "/l"})
			s.replication = c.replication
			for _, f := range s.Inspect(t.Context(), "", storage.Terms{}) {
				if f.Name != c.item {
					continue
				}
				if f.Verdict != c.verdict || !strings.Contains(f.Detail, c.says) || f.Verdict != storage.Fine && f.Hint == "" {
					t.Errorf("%+v", f)
				}
				return
			}
			t.Errorf("there is no %s", c.item)
		})
	}
	s := open(telling{newFake(), well, fail(hbackup.KindUnavailable, "ask", "/l")}, storage.Place{Scheme: storage.SchemeHDFS, Host: "nn:8020", Path: "/l"})
	if f := s.Inspect(t.Context(), "", storage.Terms{}); len(f) != 1 || f[0].Verdict != storage.Caution || f[0].Hint == "" {
		t.Errorf("%+v", f)
	}
}

// A directory that cannot hold backups is named with its reason and is refused.
func TestValidateWhereNothingCanBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind hbackup.Kind
	}{
		"encryption zone": {hbackup.E("create", "hdfs://nn:8020/l/x", hbackup.KindUnsupported, client.ErrEncrypted), hbackup.KindRefused},
		"erasure coding":  {hbackup.E("create", "hdfs://nn:8020/l/x", hbackup.KindUnsupported, client.ErrErasureCoded), hbackup.KindRefused},
		"safe mode":       {hbackup.Errorf("create", "hdfs://nn:8020/l/x", hbackup.KindUnavailable, "the name node is in safe mode"), hbackup.KindUnavailable},
		"quota":           {hbackup.Errorf("create", "hdfs://nn:8020/l/x", hbackup.KindNoSpace, "the quota is used up"), hbackup.KindNoSpace},
		"no right":        {hbackup.Errorf("create", "hdfs://nn:8020/l/x", hbackup.KindDenied, "permission denied"), hbackup.KindDenied},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := openFake(t, f)
			f.before = func(op, p string) error {
				if op == "create" {
					return c.err
				}
				return nil
			}
			r, err := check.Target(t.Context(), s, check.TargetOptions{})
			if hbackup.IsKind(err, c.kind) {
				return // it cannot even be asked for the time
			}
			if err != nil {
				t.Fatal(err)
			}
			worst, failed := check.Worst(r.Items)
			if worst != check.Failed || !hbackup.IsKind(failed, c.kind) {
				t.Errorf("%+v", r.Items)
			}
		})
	}
}
