package snapshot

import (
	"bytes"
	"errors"
	"fmt"

	"hbackup"
)

// Field numbers: SnapshotDataManifest table_schema(1), region_manifests(2);
// SnapshotRegionManifest version(1), region_info(2), family_files(3);
// FamilyFiles family_name(1), store_files(2);
// StoreFile name(1), reference(2), file_size(3);
// Reference splitkey(1), range(2): 0 top, 1 bottom.

// The shortest messages that can be valid. They bound what a manifest of hostile
// bytes can make us allocate to a small multiple of its own length.
const (
	minRegionLen = 12 // a region info with id and table name
	minFamilyLen = 3  // a name of one byte
	minFileLen   = 3  // a name of one byte
)

// DecodeManifest reads the content of data.manifest: the schema and the regions;
// the description is left empty. Every name is checked, so that none can lead out
// of its directory, and encoded region names are computed. Errors are KindCorrupt.
//
// The result shares the memory of data, which must not be changed afterwards.
func DecodeManifest(data []byte) (*Manifest, error) {
	m, err := decodeManifest(data)
	if err != nil {
		return nil, hbackup.E("decode snapshot manifest", "", hbackup.KindCorrupt, err)
	}
	return m, nil
}

func decodeManifest(data []byte) (*Manifest, error) {
	m := &Manifest{Raw: data}
	var f field
	regions := 0
	for rest := data; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return nil, err
		}
		if f.num != 1 && f.num != 2 {
			continue
		}
		if err := f.wantBytes(); err != nil {
			return nil, err
		}
		if f.num == 2 {
			regions++
			if len(f.bytes) < minRegionLen {
				return nil, fmt.Errorf("region %d of the manifest is empty", regions)
			}
			continue
		}
		if m.Schema.Raw != nil {
			return nil, errors.New("the manifest holds two table schemas")
		}
		schema, err := decodeSchema(f.bytes)
		if err != nil {
			return nil, err
		}
		m.Schema = schema
	}
	if m.Schema.Raw == nil {
		return nil, errors.New("the manifest holds no table schema")
	}
	m.Regions = make([]Region, 0, regions)
	var d decoder
	if err := d.reserve(data, 2); err != nil {
		return nil, err
	}
	for rest := data; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return nil, err
		}
		if f.num != 2 {
			continue
		}
		region, err := d.region(f.bytes)
		if err != nil {
			return nil, fmt.Errorf("region %d of the manifest: %w", len(m.Regions)+1, err)
		}
		m.Regions = append(m.Regions, region)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check looks at what holds between the parts of a manifest.
func (m *Manifest) check() error {
	seen := make(map[hbackup.EncodedRegion]struct{}, len(m.Regions))
	for i := range m.Regions {
		r := &m.Regions[i]
		if !m.Schema.Table.IsZero() && r.Table != m.Schema.Table {
			return fmt.Errorf("region %s belongs to table %s, the schema to %s", r.Encoded, r.Table, m.Schema.Table)
		}
		if _, twice := seen[r.Encoded]; twice {
			return fmt.Errorf("region %s is in the manifest twice", r.Encoded)
		}
		seen[r.Encoded] = struct{}{}
	}
	return nil
}

// decoder decodes regions into arrays that are made once, large enough for all.
type decoder struct {
	families []FamilyFiles
	files    []StoreFile

	tableRaw []byte // the table name last decoded, as most regions have the same
	table    hbackup.TableName
	names    map[string]hbackup.Family // families that were checked
	seen     map[string]struct{}
}

// reserve counts families and files in the region manifests that data holds as
// field num, and makes room for them.
func (d *decoder) reserve(data []byte, num int32) error {
	families, files := 0, 0
	var top, region, family field
	for rest := data; len(rest) > 0; {
		if err := next(&rest, &top); err != nil {
			return err
		}
		if int32(top.num) != num {
			continue
		}
		for body := top.bytes; len(body) > 0; {
			if err := next(&body, &region); err != nil {
				return err
			}
			if region.num != 3 {
				continue
			}
			if err := region.wantBytes(); err != nil {
				return err
			}
			if len(region.bytes) < minFamilyLen {
				return errors.New("the files of a family come without the family's name")
			}
			families++
			for list := region.bytes; len(list) > 0; {
				if err := next(&list, &family); err != nil {
					return err
				}
				if family.num != 2 {
					continue
				}
				if family.wantBytes() != nil || len(family.bytes) < minFileLen {
					return errors.New("a store file comes without a name")
				}
				files++
			}
		}
	}
	d.families = make([]FamilyFiles, 0, families)
	d.files = make([]StoreFile, 0, files)
	d.names = map[string]hbackup.Family{}
	return nil
}

// region decodes a SnapshotRegionManifest for which reserve has made room.
func (d *decoder) region(b []byte) (Region, error) {
	r := Region{}
	first := len(d.families)
	var f field
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return r, err
		}
		if f.num != 2 {
			continue
		}
		if r.RawInfo != nil {
			return r, errors.New("a region has two region infos")
		}
		if err := f.wantBytes(); err != nil {
			return r, err
		}
		if err := d.regionInfo(f.bytes, &r); err != nil {
			return r, err
		}
	}
	if r.RawInfo == nil {
		return r, errors.New("a region has no region info")
	}
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return r, err
		}
		if f.num != 3 {
			continue
		}
		ff, err := d.family(f.bytes)
		if err != nil {
			return r, fmt.Errorf("region %s: %w", r.Encoded, err)
		}
		for _, other := range d.families[first:] {
			if other.Family == ff.Family {
				return r, fmt.Errorf("region %s: family %q is listed twice", r.Encoded, string(ff.Family))
			}
		}
		d.families = append(d.families, ff)
	}
	r.Families = d.families[first:len(d.families):len(d.families)]
	return r, nil
}

// regionInfo: region_id(1), table_name(2), start_key(3), end_key(4), offline(5),
// split(6), replica_id(7).
func (d *decoder) regionInfo(b []byte, r *Region) error {
	r.RawInfo = b
	var f field
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return err
		}
		var err error
		switch f.num {
		case 2, 3, 4:
			err = f.wantBytes()
		case 1, 5, 6, 7:
			err = f.wantVarint()
		}
		if err != nil {
			return err
		}
		switch f.num {
		case 1:
			r.ID = f.varint
		case 2:
			if d.table.IsZero() || !bytes.Equal(f.bytes, d.tableRaw) {
				table, err := decodeTableName(f.bytes)
				if err != nil {
					return err
				}
				d.table, d.tableRaw = table, f.bytes
			}
			r.Table = d.table
		case 3:
			r.StartKey = f.bytes
		case 4:
			r.EndKey = f.bytes
		case 5:
			r.Offline = f.varint != 0
		case 6:
			r.Split = f.varint != 0
		case 7:
			r.Replica = int32(f.varint)
		}
	}
	if r.Table.IsZero() {
		return errors.New("a region info names no table")
	}
	if r.Replica < 0 || r.Replica > 0xFFFF {
		return fmt.Errorf("a region info has replica id %d", r.Replica)
	}
	if len(r.StartKey) > maxRowLen || len(r.EndKey) > maxRowLen {
		return errors.New("a region info has a key longer than any row can be")
	}
	r.Encoded = EncodeRegionName(r.Table, r.StartKey, r.ID, r.Replica)
	return nil
}

func (d *decoder) family(b []byte) (FamilyFiles, error) {
	ff := FamilyFiles{}
	first := len(d.files)
	var f field
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return ff, err
		}
		switch f.num {
		case 1:
			if err := f.wantBytes(); err != nil {
				return ff, err
			}
			name, known := d.names[string(f.bytes)]
			if !known {
				name = hbackup.Family(f.bytes)
				if err := name.Validate(); err != nil {
					return ff, err
				}
				d.names[string(name)] = name
			}
			ff.Family = name
		case 2:
			file, err := decodeStoreFile(f.bytes)
			if err != nil {
				return ff, fmt.Errorf("family %q: %w", string(ff.Family), err)
			}
			d.files = append(d.files, file)
		}
	}
	if ff.Family == "" {
		return ff, errors.New("the files of a family come without the family's name")
	}
	ff.Files = d.files[first:len(d.files):len(d.files)]
	if name, twice := d.twice(ff.Files); twice {
		return ff, fmt.Errorf("family %q lists store file %q twice", string(ff.Family), name)
	}
	return ff, nil
}

// twice finds a name that a family lists more than once.
func (d *decoder) twice(files []StoreFile) (string, bool) {
	if len(files) <= 16 {
		for i := range files {
			for j := range i {
				if files[i].Name == files[j].Name {
					return files[i].Name, true
				}
			}
		}
		return "", false
	}
	if d.seen == nil {
		d.seen = make(map[string]struct{}, len(files))
	}
	clear(d.seen)
	for i := range files {
		d.seen[files[i].Name] = struct{}{}
		if len(d.seen) == i {
			return files[i].Name, true
		}
	}
	return "", false
}

func decodeStoreFile(b []byte) (StoreFile, error) {
	file := StoreFile{Size: -1}
	var f field
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return file, err
		}
		var err error
		switch f.num {
		case 1:
			err = f.wantBytes()
			file.Name = text(f.bytes)
		case 2:
			if err = f.wantBytes(); err == nil {
				file.Ref, err = decodeReference(f.bytes)
			}
		case 3:
			file.Size, err = f.size()
		}
		if err != nil {
			return file, err
		}
	}
	name, err := ParseFileName(file.Name)
	if err != nil {
		return file, err
	}
	if file.Size == 0 && name.IsLink() {
		// HBase 2.5 does not know a link to a MOB file as one and writes the
		// length of the link's own empty file.
		file.Size = -1
	}
	if file.Ref != nil && !name.IsReference() {
		return file, fmt.Errorf("store file %q is said to be a reference, but its name is not one's", file.Name)
	}
	return file, nil
}

func decodeReference(b []byte) (*Reference, error) {
	r := &Reference{}
	half := int64(-1)
	var f field
	for rest := b; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return nil, err
		}
		var err error
		switch f.num {
		case 1:
			err = f.wantBytes()
			r.SplitKey = f.bytes
		case 2:
			half, err = f.size()
		}
		if err != nil {
			return nil, err
		}
	}
	if half != 0 && half != 1 {
		return nil, fmt.Errorf("a reference speaks of half %d; there are only 0 (top) and 1 (bottom)", half)
	}
	r.Top = half == 0
	return r, nil
}
