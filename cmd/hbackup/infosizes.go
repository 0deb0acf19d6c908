package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/union"
	"hbackup/config"
)

// Info reads the history, and of each location that was reached what it stores.
func (w *world) Info(ctx context.Context, cl *config.Cluster, sizes bool) (clusterState, error) {
	h, err := w.History(ctx, cl)
	if err != nil {
		return clusterState{}, err
	}
	places := map[string]catalog.Place{}
	for _, loc := range w.cfg.LocationsOf(cl) {
		if h.Unreachable[string(loc.Name)] == nil {
			if places[string(loc.Name)], err = w.readable(ctx, cl, loc); err != nil {
				return clusterState{}, err
			}
		}
	}
	lastComplete := -1
	for i, e := range h.Entries {
		if e.State == catalog.StateComplete {
			lastComplete = i
		}
	}
	for i := lastComplete + 1; i < len(h.Entries); i++ {
		e := &h.Entries[i]
		if p, ok := places[e.Place]; ok && e.State == catalog.StateFailed && e.Unreadable == nil {
			if err := catalog.AddImages(ctx, p.Store, &e.Run); err != nil {
				h.Unreachable[e.Place] = err
			}
		}
	}
	state := clusterState{history: h, reached: map[string]bool{}, stored: map[string]storedSizes{}}
	for _, p := range places {
		state.reached[p.LocationID] = true
	}
	if !sizes {
		return state, context.Cause(ctx)
	}
	for name, p := range places {
		state.stored[name] = w.storedIn(ctx, cl, p)
	}
	return state, context.Cause(ctx)
}

// unionReaders is how many tables are looked at at the same time.
const unionReaders = 8

// storedIn finds out what a location stores for the cluster.
func (w *world) storedIn(ctx context.Context, cl *config.Cluster, p catalog.Place) (sizes storedSizes) {
	tables, err := catalog.TablesWithImages(ctx, p.Store)
	if err != nil {
		return storedSizes{err: err}
	}
	cache, remove, err := w.unions(cl, p)
	if err != nil {
		return storedSizes{err: err}
	}
	defer remove()
	unions := make([]*union.Union, len(tables))
	errs := make([]error, len(tables))
	var wg sync.WaitGroup
	free := make(chan struct{}, unionReaders)
	for i, t := range tables {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			unions[i], errs[i] = cache.Of(ctx, p.Store, p.LocationID, t)
		})
	}
	wg.Wait()
	sizes.tables, sizes.images = map[hbackup.TableName]union.Totals{}, map[hbackup.TableName][]hbackup.ImageID{}
	for i, u := range unions {
		if u == nil {
			continue
		}
		defer u.Close()
		sizes.tables[tables[i]], sizes.images[tables[i]] = u.Totals(), u.Images()
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return storedSizes{err: errs[i]}
	}
	sizes.all, sizes.err = union.Stored(unions)
	return sizes
}

// Shared counts what images of a backup share with others.
func (w *world) Shared(ctx context.Context, found foundBackup) (map[hbackup.ImageID]int64, error) {
	cache, remove, err := w.unions(found.cluster, found.place)
	if err != nil {
		return nil, err
	}
	defer remove()
	all := map[hbackup.ImageID]int64{}
	for _, t := range found.run.Tables {
		if t.Image == "" {
			continue
		}
		u, err := cache.Of(ctx, found.place.Store, found.place.LocationID, t.Table)
		if err != nil {
			return nil, err
		}
		_, all[t.Image], err = u.SharedBy(t.Image)
		u.Close()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unions gives where the lists of files of a cluster are kept: beside the index, or
// where there is none, or the location cannot be told from others, in a place that
// the function removes.
func (w *world) unions(cl *config.Cluster, p catalog.Place) (*union.Cache, func(), error) {
	if dir := w.indexDirectory(); dir != "" && p.LocationID != "" {
		return union.Open(filepath.Join(dir, string(cl.Name)+".files"), w.log), func() {}, nil
	}
	dir, err := os.MkdirTemp("", "hbackup-files-")
	if err != nil {
		return nil, nil, hbackup.E("keep lists of files", os.TempDir(), hbackup.KindOther, err)
	}
	return union.Open(dir, w.log), func() { os.RemoveAll(dir) }, nil
}
