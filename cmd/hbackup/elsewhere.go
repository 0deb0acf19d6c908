package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
)

// elsewhere looks for a location by its id among all that the configuration has:
// first where the cluster's backups are, then everywhere, as one may have been moved.
func (w *world) elsewhere(cl *config.Cluster) catalog.Elsewhere {
	return func(ctx context.Context, id string) (catalog.Place, error) {
		var unread []string
		var first error
		for _, loc := range w.candidates(cl) {
			found, err := w.locationID(ctx, loc)
			if err == nil && found == id {
				return w.readable(ctx, cl, loc)
			}
			if cause := context.Cause(ctx); cause != nil {
				return catalog.Place{}, cause
			}
			if err != nil {
				unread = append(unread, string(loc.Name))
				if first == nil {
					first = err
				}
			}
		}
		if first != nil {
			return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindOf(first), "no location that can be read has this id; not all can (%s): %w", strings.Join(unread, ", "), first)
		}
		return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindNotFound, "no location of the configuration has this id")
	}
}

// locationID reads the id of a location; one that holds nothing of ours has none.
func (w *world) locationID(ctx context.Context, loc *config.Location) (string, error) {
	s, err := w.location(ctx, loc)
	if err != nil {
		return "", err
	}
	m, err := catalog.ReadMarker(ctx, s)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return "", nil
	}
	return m.ID, err
}

// candidates gives the cluster's own locations first, then all others by name.
func (w *world) candidates(cl *config.Cluster) []*config.Location {
	all := w.cfg.LocationsOf(cl)
	for _, name := range slices.Sorted(maps.Keys(w.cfg.Locations)) {
		if loc := w.cfg.Locations[name]; !slices.Contains(all, loc) {
			all = append(all, loc)
		}
	}
	return all
}
