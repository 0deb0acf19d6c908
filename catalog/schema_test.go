package catalog

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"hbackup"
	"hbackup/hbase/snapshot"
)

// A summary has the main attributes as they stand, and stays small whatever the
// descriptor holds.
func TestSchemaOf(t *testing.T) {
	in := &snapshot.Schema{Families: []snapshot.FamilySchema{
		{Name: "d", Attributes: map[string]string{"VERSIONS": "3", "TTL": "86400", "hbase.store.any": "not a main one"}},
		{Name: "old", Attributes: map[string]string{"IS_MOB": "\xff", "MOB_THRESHOLD": "\x00\x00\x02\x00", "COMPRESSION": strings.Repeat("x", 1000)}},
	}}
	got := SchemaOf(in)
	want := []map[string]string{{"VERSIONS": "3", "TTL": "86400"}, {"IS_MOB": "true"}}
	if len(got.Families) != 2 || got.MoreFamilies != 0 || got.Families[0].Name != "d" {
		t.Fatalf("got %+v", got)
	}
	for i, f := range got.Families {
		if !maps.Equal(f.Attributes, want[i]) {
			t.Errorf("%s: %v, want %v", f.Name, f.Attributes, want[i])
		}
	}
	for n := range 1000 {
		in.Families = append(in.Families, snapshot.FamilySchema{Name: hbackup.Family(fmt.Sprint("f", n))})
	}
	if got := SchemaOf(in); len(got.Families) != maxSchemaFamilies || got.MoreFamilies != 1002-maxSchemaFamilies {
		t.Errorf("%d families and %d more", len(got.Families), got.MoreFamilies)
	}
}
