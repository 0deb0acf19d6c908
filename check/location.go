package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// target looks whether the target can be written as a committer needs it.
func (l *list) target(ctx context.Context, c Cluster) {
	t := c.Target
	name := "target " + t.Name
	if t.Err != nil {
		l.fail(name, t.Err)
		return
	}
	marker, err := catalog.Examine(ctx, t.Location)
	switch {
	case err != nil:
		l.fail(name, err)
		return
	case marker == nil:
		l.ok(name, fmt.Sprintf("%s is reached and not in use yet: the first backup makes it ours", t.Location.Location()))
	default:
		l.ok(name, fmt.Sprintf("%s, location id %s", t.Location.Location(), marker.ID))
	}
	l.clock(ctx, name, t.Location)
	if err := probe(ctx, t.Location); err != nil {
		l.fail(name+" writes", err)
	} else {
		l.ok(name+" writes", "create-if-absent has one winner, reading back and deleting work")
	}
}

func (l *list) clock(ctx context.Context, name string, s storage.Store) {
	before := time.Now()
	theirs, err := s.ServerTime(ctx)
	if err != nil {
		l.fail(name+" clock", err)
		return
	}
	skew := theirs.Sub(before).Abs()
	if skew > MaxSkew {
		l.warn(name+" clock", fmt.Sprintf("the store's clock says %s, this machine's %s", hbackup.FormatTime(theirs), hbackup.FormatTime(before)), "set this machine's clock (NTP)")
		return
	}
	l.ok(name+" clock", "agrees with this machine's within "+hbackup.FormatDuration(MaxSkew))
}

// probe does on one small object what a commit needs.
func probe(ctx context.Context, s storage.Store) (err error) {
	key := storage.Key(catalog.ProbePrefix + rand.Text())
	path := s.Location().At(key)
	data := []byte("hbackup check\n")
	defer func() { // also when the answer to the first put was lost
		if derr := s.Delete(context.WithoutCancel(ctx), key); err == nil {
			err = derr
		}
	}()
	if _, err := storage.PutBytes(ctx, s, key, data, true); err != nil {
		return err
	}
	if _, err := storage.PutBytes(ctx, s, key, []byte("second"), true); !hbackup.IsKind(err, hbackup.KindExists) {
		if err != nil {
			return err
		}
		return hbackup.Errorf("create once more", path, hbackup.KindUnsupported, "the store created an object that was there already").
			WithHint("hbackup needs create-if-absent (If-None-Match: *); this store ignores it")
	}
	got, _, err := storage.ReadAll(ctx, s, key, 1<<10)
	if err != nil {
		return err
	}
	if string(got) != string(data) {
		return hbackup.Errorf("read back", path, hbackup.KindCorrupt, "the store gives other bytes than were written")
	}
	return nil
}

// history looks whether an earlier location can still be read.
func (l *list) history(ctx context.Context, h Location) {
	name := "history " + h.Name
	if h.Err != nil {
		l.fail(name, h.Err)
		return
	}
	marker, err := catalog.ReadMarker(ctx, h.Location)
	if err != nil {
		l.fail(name, err)
		return
	}
	l.ok(name, fmt.Sprintf("%s, location id %s", h.Location.Location(), marker.ID))
}

// backups says which is the newest backup.
func (l *list) backups(ctx context.Context, c Cluster) {
	var places []catalog.Place
	for _, loc := range append([]Location{c.Target}, c.History...) {
		if loc.Err == nil {
			places = append(places, loc.Place)
		}
	}
	h := catalog.ReadHistory(ctx, places)
	for name, err := range h.Unreachable {
		l.fail("backups in "+name, err)
	}
	l.references(ctx, c, h)
	count, newest := 0, catalog.Entry{}
	for _, e := range h.Entries {
		if e.Unreadable != nil {
			l.fail("backup "+string(e.ID), e.Unreadable)
		}
		if e.State == catalog.StateComplete {
			count++
			newest = e
		}
	}
	if count == 0 && len(h.Unreachable) > 0 {
		return // nobody knows
	}
	if count == 0 {
		l.warn("backups", "there is no complete backup", fmt.Sprintf("make one: hbackup backup --cluster %s --tables …", c.Name))
		return
	}
	l.ok("backups", fmt.Sprintf("%d complete, the newest is %s", count, newest.ID))
}
