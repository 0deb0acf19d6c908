package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"hbackup"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/lease"
)

// UploadsFolder is where the uploads of an image are on record while they are
// held, with a trailing '/'.
func UploadsFolder(r hbackup.RequestID, id hbackup.ImageID) string {
	return jobsPrefix + string(r) + "/uploads/" + string(id) + "/"
}

// OpenUploads gives the images of which uploads are on record that may still be
// held, by the folders of their records.
func OpenUploads(ctx context.Context, s storage.Store) (map[string]hbackup.ImageID, error) {
	open := map[string]hbackup.ImageID{}
	attempts := map[string]hbackup.ImageID{} // not closed, by their folder
	for o, err := range s.List(ctx, jobsPrefix, storage.ListOptions{}) {
		if err != nil {
			return nil, hbackup.E("list jobs in", string(s.Location()), hbackup.KindOther, err)
		}
		// <request>/uploads/<image>/<attempt>/<name>
		parts := strings.Split(strings.TrimPrefix(string(o.Key), jobsPrefix), "/")
		if len(parts) != 5 || parts[1] != "uploads" || hbackup.ImageID(parts[2]).Validate() != nil {
			continue
		}
		attempt := strings.TrimSuffix(string(o.Key), parts[4])
		if committer.Closes(parts[4]) {
			attempts[attempt] = ""
		} else if _, seen := attempts[attempt]; !seen {
			attempts[attempt] = hbackup.ImageID(parts[2])
		}
	}
	for attempt, id := range attempts {
		if id != "" {
			folder := attempt[:strings.LastIndexByte(strings.TrimSuffix(attempt, "/"), '/')+1]
			open[folder] = id
		}
	}
	return open, nil
}

// Alone reports whether no run but those named holds its lease.
func Alone(ctx context.Context, s storage.Store, but ...hbackup.BackupID) (bool, error) {
	const prefix = "leases/"
	names := map[string]bool{}
	for o, err := range s.List(ctx, prefix+RunLease(""), storage.ListOptions{}) {
		if err != nil {
			return false, hbackup.E("list leases in", string(s.Location()), hbackup.KindOther, err)
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(string(o.Key), prefix), "/")
		if ok && !slices.Contains(but, hbackup.BackupID(strings.TrimPrefix(name, RunLease("")))) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		h, found, err := lease.Read(ctx, s, name)
		if err != nil {
			return false, err
		}
		if !found {
			continue
		}
		now, err := s.ServerTime(ctx)
		if err != nil {
			return false, err
		}
		if h.HeldAt(now) {
			return false, nil
		}
	}
	return true, nil
}
