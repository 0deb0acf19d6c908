package backup_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
)

// holding changes what a store says of the uploads that it holds.
type holding struct {
	storage.Store
	drop    error         // of DropUpload
	expires time.Duration // of tickets; 0: they do not
}

func (h holding) Holder() (storage.Holder, bool) {
	inner, ok := storage.HolderOf(h.Store)
	return heldBy{inner, h}, ok
}

type heldBy struct {
	storage.Holder
	h holding
}

func (b heldBy) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	t, err := b.Holder.OpenUpload(ctx, key, stamp)
	if b.h.expires != 0 {
		t.Expires = time.Now().Add(b.h.expires)
	}
	return t, err
}

func (b heldBy) DropUpload(ctx context.Context, t storage.Ticket) error {
	if b.h.drop != nil {
		return b.h.drop
	}
	return b.Holder.DropUpload(ctx, t)
}

// What would stop a backup after hours is found before a byte is sent.
func TestUploadsAreRehearsed(t *testing.T) {
	noRight := hbackup.Errorf("drop upload", "mem://backups/x", hbackup.KindDenied, "access denied").WithHint("the right to abort is missing")
	for name, c := range map[string]struct {
		drop      error
		expires   time.Duration
		committer committer.Protocol
		kind      hbackup.Kind
		warns     string
	}{
		"all well":                          {},
		"no right to abort":                 {drop: noRight, kind: hbackup.KindDenied},
		"a rule of a week":                  {expires: 7 * 24 * time.Hour, committer: committer.ProtocolDeferred},
		"a rule of a day, uploads are held": {expires: 30 * time.Hour, committer: committer.ProtocolDeferred, kind: hbackup.KindRefused},
		"a rule of a day":                   {expires: 30 * time.Hour, committer: committer.ProtocolDirect, warns: "drops uploads soon"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var log bytes.Buffer
			_, err := backup.Run(t.Context(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
				backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: holding{w.store, c.drop, c.expires}, Name: "main"},
				backup.Options{Committer: c.committer, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if !strings.Contains(log.String(), c.warns) || c.warns == "" && strings.Contains(log.String(), "soon") {
				t.Errorf("it said: %s", log.String())
			}
			if c.kind == "" {
				if err != nil || len(w.images(t)) != 1 {
					t.Errorf("%v, %d images", err, len(w.images(t)))
				}
				return
			}
			if !hbackup.IsKind(err, c.kind) || hbackup.HintOf(err) == "" {
				t.Errorf("%v", err)
			}
			if there := contents(t, w.store); !slices.Equal(there, []storage.Key{catalog.MarkerKey}) {
				t.Errorf("written: %q", there)
			}
			if left := w.names(); len(left) > 0 {
				t.Errorf("snapshots are left: %v", left)
			}
		})
	}
}
