package catalog

import (
	"context"
	"errors"

	"hbackup"
	"hbackup/storage"
)

// Elsewhere finds the cluster's folder in the location with an id, to read from,
// wherever that location is now. One that nobody knows is KindNotFound; one that
// cannot be reached has the error of that.
type Elsewhere func(ctx context.Context, location string) (Place, error)

// Stores are the places in which the files of an image lie, by the ids of the
// locations; "" is the image's own.
type Stores map[string]storage.Store

// Of gives the store that holds the file.
func (s Stores) Of(f *File) storage.Store { return s[f.Location] }

// Stores opens every place in which files of the image lie. The error names each
// location that is not to be had, and how to get at it; what could be opened is given
// all the same.
func (f Found) Stores(ctx context.Context, h *Header) (Stores, error) {
	stores := Stores{"": f.Place.Store}
	var failed []error
	for _, r := range h.References {
		p, err := f.find(ctx, r.Location)
		if err != nil {
			failed = append(failed, r.unreachable(h.ID, err))
			continue
		}
		stores[r.Location] = p.Store
	}
	return stores, errors.Join(failed...)
}

func (f Found) find(ctx context.Context, location string) (Place, error) {
	if f.Elsewhere == nil {
		return Place{}, hbackup.Errorf("find location", location, hbackup.KindNotFound, "no other location is known")
	}
	return f.Elsewhere(ctx, location)
}

// unreachable says what an image lacks without the location.
func (r Reference) unreachable(id hbackup.ImageID, err error) error {
	e := hbackup.Errorf("find files of image", string(id), hbackup.KindOf(err), "%d of its files lie in the location %s (location id %s): %w", r.Files, r.Name, r.Location, err)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return e.WithHint("add that location, wherever it is now, to locations and to the history of the cluster; it is known by its id")
	}
	return e.WithHint("the image needs both locations: try again when this one can be reached, or choose a backup without references (hbackup describe shows them)")
}
