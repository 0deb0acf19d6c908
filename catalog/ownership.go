package catalog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/prefixed"
	"hbackup/storage/readonly"
)

// ProbePrefix is where checks try out what the location can do.
const ProbePrefix = hbackup.ProbeFolder + "/"

// Examine finds out whose a location is, and writes nothing. One of ours gives
// its marker, an empty one none. One that holds objects and no marker may be
// somebody's data and is KindRefused, a newer layout KindUnsupported, a marker
// that is damaged KindCorrupt.
func Examine(ctx context.Context, s storage.Store) (*Marker, error) {
	m, err := ReadMarker(ctx, s)
	if err == nil {
		return &m, nil
	}
	if !hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, err
	}
	foreign, err := foreignKey(ctx, s)
	if err != nil || foreign == "" {
		return nil, err
	}
	// A run may have made the marker, and its first objects, since we looked.
	if m, err := ReadMarker(ctx, s); !hbackup.IsKind(err, hbackup.KindNotFound) {
		return &m, err
	}
	return nil, hbackup.Errorf("use location", string(s.Location()), hbackup.KindRefused, "it holds other data (for example %s) and no %s", foreign, MarkerKey).
		WithHint("give hbackup an empty bucket, prefix or directory of its own; only if this one is meant, run the command once with --init")
}

// foreignKey gives one key of a location that has no marker: a sign that it
// belongs to somebody else. "" means that it is empty.
func foreignKey(ctx context.Context, s storage.Store) (storage.Key, error) {
	for o, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return "", hbackup.E("look into location", string(s.Location()), hbackup.KindOther, err)
		}
		if !strings.HasPrefix(string(o.Key), ProbePrefix) {
			return o.Key, nil
		}
	}
	return "", nil
}

// EnsureMarker reads the marker, or makes one when the location is empty. With
// adopt it makes one beside other data, too; without, that is KindRefused.
func EnsureMarker(ctx context.Context, s storage.Store, writer string, adopt bool) (Marker, error) {
	found, err := Examine(ctx, s)
	switch {
	case adopt && hbackup.IsKind(err, hbackup.KindRefused):
	case err != nil:
		return Marker{}, err
	case found != nil:
		return *found, nil
	}
	var id [16]byte
	rand.Read(id[:])
	now, err := s.ServerTime(ctx)
	if err != nil {
		return Marker{}, hbackup.E("ask the time of", string(s.Location()), hbackup.KindOther, err)
	}
	m := Marker{Format: LocationFormat, ID: hex.EncodeToString(id[:]), Created: now.UTC(), Writer: writer}
	if err := create(ctx, s, MarkerKey, m); hbackup.IsKind(err, hbackup.KindExists) {
		return ReadMarker(ctx, s)
	} else if err != nil {
		return m, hbackup.E("write location marker", string(s.Location()), hbackup.KindOther, err)
	}
	return m, nil
}

// ForReading gives the cluster's folder in a location, to read backups from. A
// newer layout is KindUnsupported. A location whose marker is missing, damaged or
// out of reach can be read, but not written to: it may not be ours, and must not
// keep anybody from restoring. Marked says whether there is a marker.
func ForReading(ctx context.Context, location storage.Store, cluster hbackup.ClusterName, name string) (p Place, marked bool, err error) {
	p = Place{Name: name, Store: prefixed.New(location, string(cluster))}
	switch m, err := ReadMarker(ctx, location); {
	case err == nil:
		p.LocationID = m.ID
		return p, true, nil
	case hbackup.IsKind(err, hbackup.KindUnsupported):
		return p, true, err
	default:
		p.Store = notOurs{readonly.New(p.Store)}
		return p, !hbackup.IsKind(err, hbackup.KindNotFound), nil
	}
}

// notOurs is a folder that nothing is written to. Some stores tell the time by
// making a file.
type notOurs struct{ readonly.Store }

// ServerTime gives this machine's clock: who writes nothing takes no lease.
func (notOurs) ServerTime(ctx context.Context) (time.Time, error) {
	return time.Now(), context.Cause(ctx)
}
