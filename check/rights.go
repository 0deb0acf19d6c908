package check

import (
	"context"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// rights tries each method of the contract once. It reports whether all of them
// worked, so that more can be tried.
func (t *trial) rights(ctx context.Context) bool {
	if worst, _ := Worst(t.items); worst == Failed {
		return false // the clock: it would only be refused
	}
	n := t.names()
	key := storage.Key(t.prefix + "rights")
	data := []byte("hbackup target validate\n")
	t.wrote = true
	for _, r := range []struct {
		right string
		try   func() error
	}{
		{n.Put, func() error { _, err := storage.PutBytes(ctx, t.s, key, data, true); return err }},
		{n.Get, func() error { _, _, err := storage.ReadAll(ctx, t.s, key, 1<<10); return err }},
		{n.List, func() error { return t.listOnce(ctx) }},
		{n.Delete, func() error { return t.s.Delete(ctx, key) }},
	} {
		err := r.try()
		if err == nil {
			continue
		}
		if !hbackup.IsKind(err, hbackup.KindDenied) {
			t.fail("use of "+r.right, unfit(t.s, err))
			return false
		}
		t.missing(r.right, err)
		if r.right == n.Put {
			return false
		}
	}
	if worst, _ := Worst(t.items); worst == Failed {
		return false
	}
	t.ok("rights", strings.Join(distinct(n.List, n.Get, n.Put, n.Delete), ", "))
	return true
}

// unfit makes a refusal of an error that says what the store is like, and will say
// so every time.
func unfit(s storage.Store, err error) error {
	if err == nil || hbackup.Retryable(err) || hbackup.IsKind(err, hbackup.KindDenied) || hbackup.IsKind(err, hbackup.KindNoSpace, hbackup.KindReadOnly, hbackup.KindInterrupted) {
		return err
	}
	return hbackup.E("use", string(s.Location()), hbackup.KindRefused, err)
}

// missing adds that a right is not there.
func (t *trial) missing(right string, err error) {
	t.items = append(t.items, Item{Name: "right " + right, Status: Failed, Detail: err.Error(), Err: err,
		Hint: "give it to the user that backups are written as; the rights that are needed are listed in docs/configuration.md"})
}

func (t *trial) listOnce(ctx context.Context) error {
	for _, err := range t.s.List(ctx, t.prefix, storage.ListOptions{Limit: 1}) {
		return err
	}
	return hbackup.Errorf("list", t.s.Location().At(storage.Key(t.prefix)), hbackup.KindRefused, "an object that was just written is not listed")
}

func distinct(names ...string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
