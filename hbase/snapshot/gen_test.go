package snapshot

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"

	"google.golang.org/protobuf/proto"
)

// Generators of what HBase can have, for the property tests.

var (
	hexString = func(n int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdef")), n, n, n)
	}
	encodedGen = rapid.Map(hexString(32), func(s string) hbackup.EncodedRegion { return hbackup.EncodedRegion(s) })
	tableGen   = rapid.Custom(func(t *rapid.T) hbackup.TableName {
		return hbackup.TableName{
			Namespace: rapid.SampledFrom([]string{"default", "ns", "n_1", "größe"}).Draw(t, "namespace"),
			Qualifier: rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}`).Draw(t, "qualifier"),
		}
	})
	hfileGen = rapid.Custom(func(t *rapid.T) string {
		stem := rapid.StringMatching(`[0-9a-f]{1,40}`).Draw(t, "stem")
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			return stem + fmt.Sprintf("_SeqId_%d_", rapid.Int64Range(0, 1<<62).Draw(t, "seq"))
		case 1:
			return stem + "_del"
		}
		return stem
	})
	mobFileGen = rapid.Custom(func(t *rapid.T) string {
		return hexString(32).Draw(t, "start") + rapid.StringMatching(`20[0-9]{6}`).Draw(t, "date") + hexString(32).Draw(t, "uuid") + "_" + hexString(32).Draw(t, "region")
	})
	fileNameGen = rapid.Custom(func(t *rapid.T) FileName {
		n := FileName{File: hfileGen.Draw(t, "file")}
		form := rapid.IntRange(0, 4).Draw(t, "kind")
		if form == 4 {
			n.File = mobFileGen.Draw(t, "mob")
		}
		if form == 1 || form == 3 || form == 4 && rapid.Bool().Draw(t, "linked") {
			n.Table, n.Region = tableGen.Draw(t, "table"), encodedGen.Draw(t, "region")
		}
		if form == 2 || form == 3 {
			n.Parent = encodedGen.Draw(t, "parent")
		}
		return n
	})
	rowGen = rapid.SliceOfN(rapid.Byte(), 0, 6)
)

// manifestGen makes any manifest that can be decoded, through the generated
// message types, so that the decoder is tested against another one.
var manifestGen = rapid.Custom(func(t *rapid.T) *hbpb.SnapshotDataManifest {
	table := tableGen.Draw(t, "table")
	tn := &hbpb.TableName{Namespace: []byte(table.Namespace), Qualifier: []byte(table.Qualifier)}
	m := &hbpb.SnapshotDataManifest{TableSchema: &hbpb.TableSchema{TableName: tn}}
	families := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9_-]{0,4}`), 1, 3, rapid.ID).Draw(t, "families")
	for _, f := range families {
		m.TableSchema.ColumnFamilies = append(m.TableSchema.ColumnFamilies, &hbpb.ColumnFamilySchema{Name: []byte(f), Attributes: []*hbpb.BytesBytesPair{
			{First: []byte("VERSIONS"), Second: []byte(rapid.StringMatching(`[0-9]{1,3}`).Draw(t, "versions"))},
		}})
	}
	ids := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 5, rapid.ID).Draw(t, "region ids")
	for _, id := range ids {
		r := &hbpb.SnapshotRegionManifest{RegionInfo: &hbpb.RegionInfo{
			RegionId: proto.Uint64(id), TableName: tn,
			StartKey: rowGen.Draw(t, "start"), EndKey: rowGen.Draw(t, "end"),
			Offline: proto.Bool(rapid.Bool().Draw(t, "offline")), Split: proto.Bool(rapid.Bool().Draw(t, "split")),
			ReplicaId: proto.Int32(rapid.Int32Range(0, 3).Draw(t, "replica")),
		}}
		for _, f := range families {
			ff := &hbpb.SnapshotRegionManifest_FamilyFiles{FamilyName: []byte(f)}
			names := rapid.SliceOfNDistinct(fileNameGen, 0, 24, FileName.String).Draw(t, "files")
			for _, n := range names {
				sf := &hbpb.SnapshotRegionManifest_StoreFile{Name: proto.String(n.String())}
				if n.IsReference() {
					sf.Reference = &hbpb.Reference{Splitkey: SplitKeyOf(rowGen.Draw(t, "split row")), Range: hbpb.Reference_Range(rapid.IntRange(0, 1).Draw(t, "half")).Enum()}
				}
				if rapid.IntRange(0, 4).Draw(t, "sized") > 0 {
					// The size follows from the name, so that no two entries disagree.
					sf.FileSize = proto.Uint64(uint64(len(n.File)) * 1000)
				}
				ff.StoreFiles = append(ff.StoreFiles, sf)
			}
			r.FamilyFiles = append(r.FamilyFiles, ff)
		}
		m.RegionManifests = append(m.RegionManifests, r)
	}
	return m
})

func mustMarshal(t interface{ Fatal(...any) }, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hexOf(seed string) string {
	return string(encodeName([]byte(seed)))
}

func pad(s string, n int) string { return s + strings.Repeat("0", n-len(s)) }
