package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/index"
	"hbackup/config"
)

// readable opens the cluster's folder in a location for reading what is there. A
// location without a marker is said, as an empty history would look the same where
// a disk is not mounted.
func (w *world) readable(ctx context.Context, cl *config.Cluster, loc *config.Location) (catalog.Place, error) {
	s, err := w.location(ctx, loc)
	if err != nil {
		return catalog.Place{Name: string(loc.Name)}, err
	}
	p, marked, err := catalog.ForReading(ctx, s, cl.Name, string(loc.Name))
	if err == nil && !marked {
		w.sayOnce("the location has no "+string(catalog.MarkerKey)+": nothing was ever backed up to it, or it is not the place that was (is its disk mounted?)", p.Name)
	}
	if x := w.indexOf(cl.Name); x != nil && p.LocationID != "" {
		p.Known = x.Location(p.LocationID)
	}
	return p, err
}

// indexDirectory is where the index is; "" when there shall be none.
func (w *world) indexDirectory() string {
	if !w.cfg.Index.Enabled {
		return ""
	}
	if w.cfg.Index.Directory != "" {
		return w.cfg.Index.Directory
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "" // an account without a home has no cache
	}
	return filepath.Join(cache, "hbackup")
}

// indexOf opens the index of a cluster, once; nil when there shall be none.
func (w *world) indexOf(name hbackup.ClusterName) *index.Index {
	dir := w.indexDirectory()
	if dir == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.index[name]
	if x == nil {
		x = index.Open(dir, name, w.log)
		w.index[name] = x
		w.opened = append(w.opened, func() error { x.Close(); return nil })
	}
	return x
}

// sayOnce warns of a location, once.
func (w *world) sayOnce(text, location string) {
	w.mu.Lock()
	said := w.said[location]
	if w.said == nil {
		w.said = map[string]bool{}
	}
	w.said[location] = true
	w.mu.Unlock()
	if !said {
		w.log.Warn(text, "location", location)
	}
}

// History reads the runs of a cluster from its target and its history.
func (w *world) History(ctx context.Context, cl *config.Cluster) (catalog.History, error) {
	var places []catalog.Place
	broken := map[string]error{}
	for _, loc := range w.cfg.LocationsOf(cl) {
		p, err := w.readable(ctx, cl, loc)
		if err != nil {
			broken[p.Name] = err
			continue
		}
		places = append(places, p)
	}
	h := catalog.ReadHistory(ctx, places)
	for name, err := range broken {
		h.Unreachable[name] = err
	}
	return h, context.Cause(ctx)
}

// ReadHead reads the head of an image's manifest.
func (w *world) ReadHead(ctx context.Context, f catalog.Found) (catalog.Header, error) {
	return catalog.ReadHeader(ctx, f.Place.Store, f.Table, f.ID)
}

// FindBackup asks each location for the record of the backup. A run without a
// record, because it still works or has died, is looked for in the history.
func (w *world) FindBackup(ctx context.Context, clusters []*config.Cluster, id hbackup.BackupID) (foundBackup, error) {
	var unread []string
	var first error
	failed := func(name string, err error) {
		if !slices.Contains(unread, name) {
			unread = append(unread, name)
		}
		if first == nil {
			first = err
		}
	}
	for _, cl := range clusters {
		for _, loc := range w.cfg.LocationsOf(cl) {
			p, err := w.readable(ctx, cl, loc)
			if err != nil {
				failed(p.Name, err)
				continue
			}
			run, err := catalog.ReadRun(ctx, p.Store, id)
			switch {
			case err == nil:
				return foundBackup{cluster: cl, place: p, run: run, elsewhere: w.elsewhere(cl)}, nil
			case hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete, hbackup.KindUnsupported):
				return foundBackup{}, err // it is there, and cannot be read
			case !hbackup.IsKind(err, hbackup.KindNotFound):
				failed(p.Name, err)
			}
			if cause := context.Cause(ctx); cause != nil {
				return foundBackup{}, cause
			}
		}
	}
	if found, ok, err := w.findOpen(ctx, clusters, id, failed); err != nil || ok {
		return found, err
	}
	if first != nil {
		return foundBackup{}, hbackup.E("find backup", string(id), hbackup.KindOther, first).
			WithHint("not every location could be read: %s", strings.Join(unread, ", "))
	}
	return foundBackup{}, hbackup.Errorf("find backup", string(id), hbackup.KindNotFound, "no location of %s has it", clusterWords(clusters)).
		WithHint("hbackup list shows the backups")
}

// findOpen looks for a run that has no record, and for the images that it has
// committed nevertheless. What cannot be read is told to failed.
func (w *world) findOpen(ctx context.Context, clusters []*config.Cluster, id hbackup.BackupID, failed func(string, error)) (foundBackup, bool, error) {
	for _, cl := range clusters {
		h, err := w.History(ctx, cl)
		if err != nil {
			return foundBackup{}, false, err
		}
		for _, name := range slices.Sorted(maps.Keys(h.Unreachable)) {
			failed(name, h.Unreachable[name])
		}
		for _, e := range h.Entries {
			if e.ID != id {
				continue
			}
			for _, loc := range w.cfg.LocationsOf(cl) {
				if string(loc.Name) != e.Place {
					continue
				}
				p, err := w.readable(ctx, cl, loc)
				if err == nil {
					err = catalog.AddImages(ctx, p.Store, &e.Run)
				}
				return foundBackup{cl, p, e.Run, w.elsewhere(cl), e.Holder}, true, err
			}
		}
	}
	return foundBackup{}, false, nil
}

func clusterWords(clusters []*config.Cluster) string {
	var names []string
	for _, cl := range clusters {
		names = append(names, string(cl.Name))
	}
	if len(names) == 1 {
		return "cluster " + names[0]
	}
	return "the clusters " + strings.Join(names, ", ")
}
