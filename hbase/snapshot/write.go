package snapshot

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
)

// EncodeManifest gives the bytes of data.manifest. Schema.Raw and the regions'
// RawInfo are written as they are, with fields that hbackup does not know; what
// other unknown fields Manifest.Raw may hold is not: to store a snapshot as it
// was read, store Raw. Sizes of -1 are left out, which HBase allows.
//
// Everything is checked again, so that nothing is written which DecodeManifest
// would refuse: KindCorrupt.
func EncodeManifest(m *Manifest) ([]byte, error) {
	const op = "encode snapshot manifest"
	fail := func(err error) ([]byte, error) {
		return nil, hbackup.E(op, m.Description.Name, hbackup.KindCorrupt, err)
	}
	schema, err := decodeSchema(m.Schema.Raw)
	if err != nil {
		return fail(err)
	}
	if schema.Table != m.Schema.Table {
		return fail(fmt.Errorf("the schema's bytes are those of table %s, not %s", schema.Table, m.Schema.Table))
	}
	if err := m.check(); err != nil {
		return fail(err)
	}
	total := protowire.SizeTag(1) + protowire.SizeBytes(len(m.Schema.Raw))
	sizes := make([]int, len(m.Regions))
	for i := range m.Regions {
		if err := m.Regions[i].checkEncodable(); err != nil {
			return fail(fmt.Errorf("region %s: %w", m.Regions[i].Encoded, err))
		}
		sizes[i] = m.Regions[i].encodedSize()
		total += protowire.SizeTag(2) + protowire.SizeBytes(sizes[i])
	}
	out := appendBytesField(make([]byte, 0, total), 1, m.Schema.Raw)
	for i := range m.Regions {
		out = appendHead(out, 2, sizes[i])
		out = m.Regions[i].append(out)
	}
	return out, nil
}

// appendHead appends the tag and length of a message field.
func appendHead(dst []byte, num protowire.Number, size int) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(size))
}

// checkEncodable reports what would not come back from the written bytes.
func (r *Region) checkEncodable() error {
	var back Region
	var d decoder
	if err := d.regionInfo(r.RawInfo, &back); err != nil {
		return err
	}
	if back.Encoded != r.Encoded || !back.keys().equal(r.keys()) || back.Table != r.Table ||
		back.Offline != r.Offline || back.Split != r.Split {
		return fmt.Errorf("its bytes describe another region: %s", back.Encoded)
	}
	for i := range r.Families {
		ff := &r.Families[i]
		if err := ff.Family.Validate(); err != nil {
			return err
		}
		for j := range i {
			if r.Families[j].Family == ff.Family {
				return fmt.Errorf("family %q is listed twice", string(ff.Family))
			}
		}
		for j := range ff.Files {
			f := &ff.Files[j]
			n, err := ParseFileName(f.Name)
			if err != nil {
				return err
			}
			if f.Ref != nil && !n.IsReference() {
				return fmt.Errorf("store file %q has a reference, but its name is not one's", f.Name)
			}
			if f.Size < -1 {
				return fmt.Errorf("store file %q has size %d", f.Name, f.Size)
			}
		}
		if name, twice := d.twice(ff.Files); twice {
			return fmt.Errorf("family %q lists store file %q twice", string(ff.Family), name)
		}
	}
	return nil
}

func (r *Region) encodedSize() int {
	n := protowire.SizeTag(2) + protowire.SizeBytes(len(r.RawInfo))
	for i := range r.Families {
		n += protowire.SizeTag(3) + protowire.SizeBytes(r.Families[i].encodedSize())
	}
	return n
}

func (r *Region) append(dst []byte) []byte {
	dst = appendBytesField(dst, 2, r.RawInfo)
	for i := range r.Families {
		ff := &r.Families[i]
		dst = appendHead(dst, 3, ff.encodedSize())
		dst = appendStringField(dst, 1, string(ff.Family))
		for j := range ff.Files {
			f := &ff.Files[j]
			dst = appendHead(dst, 2, f.encodedSize())
			dst = f.append(dst)
		}
	}
	return dst
}

func (ff *FamilyFiles) encodedSize() int {
	n := protowire.SizeTag(1) + protowire.SizeBytes(len(ff.Family))
	for i := range ff.Files {
		n += protowire.SizeTag(2) + protowire.SizeBytes(ff.Files[i].encodedSize())
	}
	return n
}

func (f *StoreFile) encodedSize() int {
	n := protowire.SizeTag(1) + protowire.SizeBytes(len(f.Name))
	if f.Ref != nil {
		n += protowire.SizeTag(2) + protowire.SizeBytes(f.Ref.encodedSize())
	}
	if f.Size >= 0 {
		n += protowire.SizeTag(3) + protowire.SizeVarint(uint64(f.Size))
	}
	return n
}

func (f *StoreFile) append(dst []byte) []byte {
	dst = appendStringField(dst, 1, f.Name)
	if f.Ref != nil {
		dst = appendHead(dst, 2, f.Ref.encodedSize())
		dst = appendBytesField(dst, 1, f.Ref.SplitKey)
		var half uint64 // top
		if !f.Ref.Top {
			half = 1
		}
		dst = appendVarintField(dst, 2, half)
	}
	if f.Size >= 0 {
		dst = appendVarintField(dst, 3, uint64(f.Size))
	}
	return dst
}

func (r *Reference) encodedSize() int {
	return protowire.SizeTag(1) + protowire.SizeBytes(len(r.SplitKey)) + protowire.SizeTag(2) + 1
}

// EncodeRegionInfo gives the bytes of a region info, for Region.RawInfo. The
// region counts as online and not split.
func EncodeRegionInfo(table hbackup.TableName, startKey, endKey []byte, id uint64) []byte {
	name := appendStringField(nil, 1, table.Namespace)
	name = appendStringField(name, 2, table.Qualifier)
	out := appendVarintField(nil, 1, id)
	out = appendBytesField(out, 2, name)
	out = appendBytesField(out, 3, startKey)
	out = appendBytesField(out, 4, endKey)
	out = appendVarintField(out, 5, 0)
	out = appendVarintField(out, 6, 0)
	return appendVarintField(out, 7, 0)
}

// online gives the region's info with the marks of a split parent taken away.
func (r *Region) online() ([]byte, error) {
	raw, err := dropFields(r.RawInfo, 5, 6)
	if err != nil {
		return nil, err
	}
	return appendVarintField(appendVarintField(raw, 5, 0), 6, 0), nil
}

// EncodedSize gives the length of data.manifest in bytes.
func EncodedSize(m *Manifest) int64 {
	n := int64(protowire.SizeTag(1) + protowire.SizeBytes(len(m.Schema.Raw)))
	for i := range m.Regions {
		n += int64(protowire.SizeTag(2) + protowire.SizeBytes(m.Regions[i].encodedSize()))
	}
	return n
}
