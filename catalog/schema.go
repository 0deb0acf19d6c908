package catalog

import (
	"unicode"

	"hbackup"
	"hbackup/hbase/snapshot"
)

// Schema is what people ask first of a table: its families and how they are kept, in
// HBase's own words. The whole descriptor is in data.manifest; a restore uses that.
type Schema struct {
	Families     []FamilySchema `json:"families"`
	MoreFamilies int            `json:"more_families,omitempty"` // that are not named above
}

// FamilySchema is a column family with its main attributes.
type FamilySchema struct {
	Name       hbackup.Family    `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Bounds of a summary, so that the head of an image stays one for people.
const (
	maxSchemaFamilies = 100
	maxAttributeBytes = 100
)

// mainAttributes are those of a family that a summary tells, where the descriptor has
// them.
var mainAttributes = []string{
	"VERSIONS", "MIN_VERSIONS", "TTL", "KEEP_DELETED_CELLS", "NEW_VERSION_BEHAVIOR",
	"COMPRESSION", "DATA_BLOCK_ENCODING", "BLOCKSIZE", "BLOOMFILTER",
	"IS_MOB", "MOB_THRESHOLD", "REPLICATION_SCOPE", "ENCRYPTION",
}

// SchemaOf summarises a table's descriptor.
func SchemaOf(s *snapshot.Schema) *Schema {
	out := &Schema{Families: []FamilySchema{}}
	for i := range s.Families {
		f := &s.Families[i]
		if len(out.Families) == maxSchemaFamilies {
			out.MoreFamilies = len(s.Families) - maxSchemaFamilies
			break
		}
		shown := FamilySchema{Name: f.Name, Attributes: map[string]string{}}
		for _, name := range mainAttributes {
			if v, ok := f.Attributes[name]; ok && isText(v) {
				shown.Attributes[name] = v
			}
		}
		if f.IsMOB() {
			shown.Attributes["IS_MOB"] = "true" // old descriptors have it as a byte
		}
		out.Families = append(out.Families, shown)
	}
	return out
}

func isText(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return len(s) <= maxAttributeBytes
}

// SchemaAttributes names the attributes that a summary may have, in the order in
// which they are shown.
func SchemaAttributes() []string { return mainAttributes }
