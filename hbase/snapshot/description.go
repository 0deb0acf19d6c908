package snapshot

import (
	"fmt"
	"math"
	"time"

	"hbackup"
)

// layoutVersion is the snapshot layout of HBase 0.98 and later: one manifest
// instead of a directory tree of empty files.
const layoutVersion = 2

// maxInfoBytes bounds .snapshotinfo; only its access control list can grow.
const maxInfoBytes = 16 << 20

// Field numbers of SnapshotDescription.
const (
	descName    = 1
	descTable   = 2
	descCreated = 3
	descType    = 4
	descVersion = 5
	descOwner   = 6
	descTTL     = 8
)

// DecodeDescription reads the content of .snapshotinfo. It does not look at the
// layout version; ReadDescription does. Errors are KindCorrupt. The strings share
// the memory of data, which must not be changed afterwards.
func DecodeDescription(data []byte) (Description, error) {
	d, err := decodeDescription(data)
	if err != nil {
		return Description{}, hbackup.E("decode snapshot description", "", hbackup.KindCorrupt, err)
	}
	return d, nil
}

func decodeDescription(data []byte) (Description, error) {
	d := Description{Type: TypeFlush, Raw: data}
	table := ""
	var f field
	for rest := data; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return d, err
		}
		var err error
		switch f.num {
		case descName, descTable, descOwner:
			err = f.wantBytes()
		case descCreated, descType, descVersion, descTTL:
			err = f.wantVarint()
		}
		if err != nil {
			return d, err
		}
		switch f.num {
		case descName:
			d.Name = text(f.bytes)
		case descTable:
			table = text(f.bytes)
		case descOwner:
			d.Owner = text(f.bytes)
		case descCreated:
			d.Created = hbackup.FromMillis(int64(f.varint))
		case descType:
			d.Type = Type(f.varint)
		case descVersion:
			d.Version = int32(f.varint)
		case descTTL:
			d.TTL = ttlOf(int64(f.varint))
		}
	}
	if d.Name == "" {
		return d, fmt.Errorf("the snapshot has no name")
	}
	if table == "" {
		return d, fmt.Errorf("snapshot %q names no table", d.Name)
	}
	t, err := hbackup.ParseTableName(table)
	if err != nil {
		return d, fmt.Errorf("snapshot %q: %w", d.Name, err)
	}
	d.Table = t
	return d, nil
}

// ttlOf turns HBase's seconds into a duration; zero and less mean for ever, and
// so does what lies beyond a duration's 292 years.
func ttlOf(seconds int64) time.Duration {
	if seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// checkVersion refuses layouts other than the one that every HBase since 0.98 writes.
func (d Description) checkVersion() error {
	if d.Version == layoutVersion {
		return nil
	}
	return fmt.Errorf("snapshot %q has layout version %d, not %d", d.Name, d.Version, layoutVersion)
}

// As gives the description of the same snapshot under another name and time to
// live (0: for ever). Table, moment, type, owner, access rights and fields that
// hbackup does not know stay.
func (d Description) As(name string, ttl time.Duration) Description {
	d.Name, d.TTL = name, ttl
	return d
}

// Encode gives the bytes of .snapshotinfo, always with layout version 2. When
// the description was read, the fields that hbackup does not know are kept.
// Errors are KindUsage: a name that no snapshot can have, no table.
func (d Description) Encode() ([]byte, error) {
	const op = "encode snapshot description"
	if err := ValidateName(d.Name); err != nil {
		return nil, hbackup.E(op, d.Name, hbackup.KindUsage, err)
	}
	if err := d.Table.Validate(); err != nil {
		return nil, hbackup.E(op, d.Name, hbackup.KindUsage, err)
	}
	if d.TTL < 0 || d.TTL%time.Second != 0 {
		return nil, hbackup.Errorf(op, d.Name, hbackup.KindUsage, "time to live %v is not a number of whole seconds", d.TTL)
	}
	out := appendStringField(nil, descName, d.Name)
	out = appendStringField(out, descTable, d.Table.String())
	var created uint64
	if !d.Created.IsZero() {
		created = uint64(d.Created.UnixMilli())
	}
	out = appendVarintField(out, descCreated, created)
	out = appendVarintField(out, descType, uint64(d.Type))
	out = appendVarintField(out, descVersion, layoutVersion)
	if d.Owner != "" {
		out = appendStringField(out, descOwner, d.Owner)
	}
	out = appendVarintField(out, descTTL, uint64(d.TTL/time.Second))
	kept, err := dropFields(d.Raw, descName, descTable, descCreated, descType, descVersion, descOwner, descTTL)
	if err != nil {
		return nil, hbackup.E(op, d.Name, hbackup.KindCorrupt, err)
	}
	return append(out, kept...), nil
}
