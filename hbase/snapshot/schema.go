package snapshot

import (
	"fmt"

	"hbackup"
)

// DecodeSchema reads a TableSchema message. Errors are KindCorrupt. The result
// shares the memory of raw.
func DecodeSchema(raw []byte) (Schema, error) {
	s, err := decodeSchema(raw)
	if err != nil {
		return Schema{}, hbackup.E("decode table schema", "", hbackup.KindCorrupt, err)
	}
	return s, nil
}

// decodeSchema: table_name(1), column_families(3).
func decodeSchema(raw []byte) (Schema, error) {
	s := Schema{Raw: raw}
	var f field
	for rest := raw; len(rest) > 0; {
		if err := next(&rest, &f); err != nil {
			return s, err
		}
		if f.num != 1 && f.num != 3 {
			continue
		}
		if err := f.wantBytes(); err != nil {
			return s, err
		}
		if f.num == 1 {
			table, err := decodeTableName(f.bytes)
			if err != nil {
				return s, err
			}
			s.Table = table
			continue
		}
		family, err := decodeFamilySchema(f.bytes)
		if err != nil {
			return s, fmt.Errorf("column family %d: %w", len(s.Families)+1, err)
		}
		if s.Family(family.Name) != nil {
			return s, fmt.Errorf("the schema names column family %q twice", string(family.Name))
		}
		s.Families = append(s.Families, family)
	}
	if s.Table.IsZero() {
		return s, fmt.Errorf("the schema names no table")
	}
	return s, nil
}

// Family gives the schema of a family, or nil.
func (s *Schema) Family(name hbackup.Family) *FamilySchema {
	for i := range s.Families {
		if s.Families[i].Name == name {
			return &s.Families[i]
		}
	}
	return nil
}

// IsMOB reports whether big values of the family are kept in MOB files.
func (f *FamilySchema) IsMOB() bool {
	v := f.Attributes["IS_MOB"]
	return v == "true" || v == "\xff" // as text; as a Java boolean in old descriptors
}

// decodeTableName: namespace(1), qualifier(2).
func decodeTableName(b []byte) (hbackup.TableName, error) {
	var t hbackup.TableName
	var f field
	for len(b) > 0 {
		if err := next(&b, &f); err != nil {
			return t, err
		}
		if f.num != 1 && f.num != 2 {
			continue
		}
		if err := f.wantBytes(); err != nil {
			return t, err
		}
		if f.num == 1 {
			t.Namespace = text(f.bytes)
		} else {
			t.Qualifier = text(f.bytes)
		}
	}
	return t, t.Validate()
}

// decodeFamilySchema: name(1), attributes(2) as pairs first(1), second(2).
func decodeFamilySchema(b []byte) (FamilySchema, error) {
	s := FamilySchema{Attributes: map[string]string{}}
	var f field
	for len(b) > 0 {
		if err := next(&b, &f); err != nil {
			return s, err
		}
		if f.num != 1 && f.num != 2 {
			continue
		}
		if err := f.wantBytes(); err != nil {
			return s, err
		}
		if f.num == 1 {
			s.Name = hbackup.Family(text(f.bytes))
			continue
		}
		key, value := "", ""
		for pair := f.bytes; len(pair) > 0; {
			var p field
			if err := next(&pair, &p); err != nil {
				return s, err
			}
			if p.typ != f.typ {
				continue
			}
			switch p.num {
			case 1:
				key = text(p.bytes)
			case 2:
				value = text(p.bytes)
			}
		}
		s.Attributes[key] = value
	}
	return s, s.Name.Validate()
}
