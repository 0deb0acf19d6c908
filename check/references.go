package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"hbackup"
	"hbackup/catalog"
)

// references looks whether each location in which files of backups lie can be
// found: without it these backups cannot be restored.
func (l *list) references(ctx context.Context, c Cluster, h catalog.History) {
	type need struct {
		ref     catalog.Reference
		backups int
		newest  hbackup.BackupID
	}
	needed := map[string]need{}
	for _, e := range h.Entries {
		of := map[string]catalog.Reference{}
		for _, t := range e.Tables {
			for _, r := range t.References {
				of[r.Location] = r
			}
		}
		for id, r := range of {
			needed[id] = need{r, needed[id].backups + 1, e.ID}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(needed)) {
		n := needed[id]
		name := "files in location id " + id
		where, err := c.find(ctx, id)
		if err != nil {
			l.fail(name, hbackup.Errorf("find files of backup", string(n.newest), hbackup.KindOf(err), "%d backups need files that lie in %s: %w", n.backups, n.ref.Name, err).
				WithHint("add that location, wherever it is now, to locations and to the history of the cluster; it is known by its id"))
			continue
		}
		l.ok(name, fmt.Sprintf("%d backups need files in it; it is %s", n.backups, where.Store.Location()))
	}
}

func (c Cluster) find(ctx context.Context, id string) (catalog.Place, error) {
	if c.Elsewhere == nil {
		return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindNotFound, "no other location is known")
	}
	return c.Elsewhere(ctx, id)
}
