package snapshot

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// same reports how a decoded manifest differs from the message it was made from.
func same(t *rapid.T, m *Manifest, want *hbpb.SnapshotDataManifest) {
	if len(m.Regions) != len(want.RegionManifests) {
		t.Fatalf("%d regions, want %d", len(m.Regions), len(want.RegionManifests))
	}
	for i, wr := range want.RegionManifests {
		r, info := &m.Regions[i], wr.RegionInfo
		if r.ID != info.GetRegionId() || !bytes.Equal(r.StartKey, info.StartKey) || !bytes.Equal(r.EndKey, info.EndKey) ||
			r.Offline != info.GetOffline() || r.Split != info.GetSplit() || r.Replica != info.GetReplicaId() ||
			r.Table.Namespace != string(info.TableName.Namespace) || r.Table.Qualifier != string(info.TableName.Qualifier) {
			t.Fatalf("region %d: got %+v, want %v", i, r, info)
		}
		if len(r.Families) != len(wr.FamilyFiles) {
			t.Fatalf("region %d: %d families, want %d", i, len(r.Families), len(wr.FamilyFiles))
		}
		for j, wf := range wr.FamilyFiles {
			ff := &r.Families[j]
			if string(ff.Family) != string(wf.FamilyName) || len(ff.Files) != len(wf.StoreFiles) {
				t.Fatalf("region %d: family %q with %d files, want %q with %d", i, ff.Family, len(ff.Files), wf.FamilyName, len(wf.StoreFiles))
			}
			for k, ws := range wf.StoreFiles {
				f, size := ff.Files[k], int64(-1)
				if ws.FileSize != nil {
					size = int64(ws.GetFileSize())
				}
				if f.Name != ws.GetName() || f.Size != size || (f.Ref != nil) != (ws.Reference != nil) {
					t.Fatalf("got %+v, want %v", f, ws)
				}
				if f.Ref != nil && (!bytes.Equal(f.Ref.SplitKey, ws.Reference.Splitkey) || f.Ref.Top != (ws.Reference.GetRange() == hbpb.Reference_TOP)) {
					t.Fatalf("got %+v, want %v", f.Ref, ws.Reference)
				}
			}
		}
	}
}

func TestDecodeManifestAgainstGeneratedMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := manifestGen.Draw(t, "manifest")
		raw := mustMarshal(t, want)
		m, err := DecodeManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, want)
		if len(m.Schema.Families) != len(want.TableSchema.ColumnFamilies) {
			t.Fatalf("%d families in the schema", len(m.Schema.Families))
		}
		for i, f := range want.TableSchema.ColumnFamilies {
			if got := m.Schema.Families[i]; string(got.Name) != string(f.Name) || got.Attributes["VERSIONS"] != string(f.Attributes[0].Second) {
				t.Fatalf("schema of family: got %+v, want %v", got, f)
			}
		}

		// Written again, the message is the same.
		again, err := EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(again)) != EncodedSize(m) {
			t.Fatalf("%d bytes, announced %d", len(again), EncodedSize(m))
		}
		back := &hbpb.SnapshotDataManifest{}
		if err := proto.Unmarshal(again, back); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(back, want) {
			t.Fatalf("written again: %v, want %v", back, want)
		}
	})
}

func TestTruncatedManifestIsNeverTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := manifestGen.Draw(t, "manifest")
		raw := mustMarshal(t, want)
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		m, err := DecodeManifest(raw[:cut])
		if err != nil {
			if !hbackup.IsKind(err, hbackup.KindCorrupt) {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		// A cut between two regions cannot be seen in the bytes.
		if len(m.Regions) >= len(want.RegionManifests) {
			t.Fatalf("%d of %d bytes are taken for the whole", cut, len(raw))
		}
	})
}

func smallManifest() *hbpb.SnapshotDataManifest {
	tn := &hbpb.TableName{Namespace: []byte("default"), Qualifier: []byte("t")}
	return &hbpb.SnapshotDataManifest{
		TableSchema: &hbpb.TableSchema{TableName: tn, ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f")}}},
		RegionManifests: []*hbpb.SnapshotRegionManifest{{
			RegionInfo: &hbpb.RegionInfo{RegionId: proto.Uint64(7), TableName: tn},
			FamilyFiles: []*hbpb.SnapshotRegionManifest_FamilyFiles{{FamilyName: []byte("f"), StoreFiles: []*hbpb.SnapshotRegionManifest_StoreFile{
				{Name: proto.String(hexA), FileSize: proto.Uint64(10)},
			}}},
		}},
	}
}

func TestDecodeManifestRefuses(t *testing.T) {
	for what, spoil := range map[string]func(m *hbpb.SnapshotDataManifest){
		"no schema":          func(m *hbpb.SnapshotDataManifest) { m.TableSchema = nil },
		"schema of no table": func(m *hbpb.SnapshotDataManifest) { m.TableSchema.TableName = nil },
		"family twice in schema": func(m *hbpb.SnapshotDataManifest) {
			m.TableSchema.ColumnFamilies = append(m.TableSchema.ColumnFamilies, m.TableSchema.ColumnFamilies[0])
		},
		"path as table":  func(m *hbpb.SnapshotDataManifest) { m.TableSchema.TableName.Qualifier = []byte("../t") },
		"no region info": func(m *hbpb.SnapshotDataManifest) { m.RegionManifests[0].RegionInfo = nil },
		"region twice": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests = append(m.RegionManifests, m.RegionManifests[0])
		},
		"other table": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests[0].RegionInfo.TableName = &hbpb.TableName{Namespace: []byte("default"), Qualifier: []byte("u")}
		},
		"replica id":     func(m *hbpb.SnapshotDataManifest) { m.RegionManifests[0].RegionInfo.ReplicaId = proto.Int32(-1) },
		"path as family": func(m *hbpb.SnapshotDataManifest) { m.RegionManifests[0].FamilyFiles[0].FamilyName = []byte("../f") },
		"family of dots": func(m *hbpb.SnapshotDataManifest) { m.RegionManifests[0].FamilyFiles[0].FamilyName = []byte("..") },
		"no family":      func(m *hbpb.SnapshotDataManifest) { m.RegionManifests[0].FamilyFiles[0].FamilyName = nil },
		"family twice": func(m *hbpb.SnapshotDataManifest) {
			r := m.RegionManifests[0]
			r.FamilyFiles = append(r.FamilyFiles, r.FamilyFiles[0])
		},
		"file twice": func(m *hbpb.SnapshotDataManifest) {
			f := m.RegionManifests[0].FamilyFiles[0]
			f.StoreFiles = append(f.StoreFiles, f.StoreFiles[0])
		},
		"path as file": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests[0].FamilyFiles[0].StoreFiles[0].Name = proto.String("../../x")
		},
		"no name": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests[0].FamilyFiles[0].StoreFiles[0].Name = proto.String("")
		},
		"huge size": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests[0].FamilyFiles[0].StoreFiles[0].FileSize = proto.Uint64(1 << 63)
		},
		"reference by another name": func(m *hbpb.SnapshotDataManifest) {
			m.RegionManifests[0].FamilyFiles[0].StoreFiles[0].Reference = &hbpb.Reference{Splitkey: SplitKeyOf(nil), Range: hbpb.Reference_TOP.Enum()}
		},
	} {
		m := smallManifest()
		spoil(m)
		raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(raw); !hbackup.IsKind(err, hbackup.KindCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := DecodeManifest(mustMarshal(t, smallManifest())); err != nil {
		t.Error(err)
	}
}

func TestUnknownFieldsStay(t *testing.T) {
	m, err := DecodeManifest(mustMarshal(t, smallManifest()))
	if err != nil {
		t.Fatal(err)
	}
	m.Schema.Raw = appendStringField(bytes.Clone(m.Schema.Raw), 77, "from the future")
	m.Regions[0].RawInfo = appendVarintField(bytes.Clone(m.Regions[0].RawInfo), 78, 5)
	raw, err := EncodeManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Schema.Raw, m.Schema.Raw) || !bytes.Equal(back.Regions[0].RawInfo, m.Regions[0].RawInfo) {
		t.Fatal("unknown fields are lost")
	}
}

func TestDescriptionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := &hbpb.SnapshotDescription{
			Name: proto.String("snap"), Table: proto.String(tableGen.Draw(t, "table").String()),
			CreationTime: proto.Int64(rapid.Int64Range(1, 1<<45).Draw(t, "created")),
			Type:         hbpb.SnapshotDescription_Type(rapid.IntRange(0, 2).Draw(t, "type")).Enum(),
			Version:      proto.Int32(2), Owner: proto.String(rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "owner")),
			Ttl: proto.Int64(rapid.Int64Range(-1, 1<<40).Draw(t, "ttl")), MaxFileSize: proto.Int64(rapid.Int64().Draw(t, "max file size")),
			UsersAndPermissions: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "acl"),
		}
		d, err := DecodeDescription(mustMarshal(t, msg))
		if err != nil {
			t.Fatal(err)
		}
		if d.Table.String() != msg.GetTable() || d.Created.UnixMilli() != msg.GetCreationTime() || d.Type != Type(msg.GetType()) || d.Owner != msg.GetOwner() {
			t.Fatalf("got %+v, want %v", d, msg)
		}
		raw, err := d.As("other", 90*time.Second).Encode()
		if err != nil {
			t.Fatal(err)
		}
		back := &hbpb.SnapshotDescription{}
		if err := proto.Unmarshal(raw, back); err != nil {
			t.Fatal(err)
		}
		msg.Name, msg.Ttl = proto.String("other"), proto.Int64(90)
		if msg.GetOwner() == "" {
			msg.Owner = nil
		}
		if !proto.Equal(back, msg) {
			t.Fatalf("got %v, want %v", back, msg)
		}
	})
}

func TestDescriptionRefuses(t *testing.T) {
	for what, raw := range map[string][]byte{
		"nothing":         nil,
		"no table":        appendStringField(nil, 1, "s"),
		"no name":         appendStringField(nil, 2, "t"),
		"bad table":       appendStringField(appendStringField(nil, 1, "s"), 2, "a/b"),
		"cut":             appendStringField(nil, 1, "snapshot")[:5],
		"wrong wire type": appendVarintField(nil, 1, 5),
	} {
		if _, err := DecodeDescription(raw); !hbackup.IsKind(err, hbackup.KindCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"", "a/b", "../x", ".x", "-x", "a b", "a\x00"} {
		if _, err := (Description{Name: name, Table: hbackup.TableName{Namespace: "default", Qualifier: "t"}}).Encode(); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%q as a snapshot's name: %v", name, err)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(mustMarshal(f, smallManifest()))
	for i := range 6 {
		f.Add(mustMarshal(f, manifestGen.Example(i)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeManifest(raw)
		if err != nil {
			return
		}
		again, err := EncodeManifest(m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := DecodeManifest(again)
		if err != nil || len(back.Regions) != len(m.Regions) || back.NumFiles() != m.NumFiles() {
			t.Fatalf("written and read again: %v", err)
		}
		targets, err := Targets(m)
		if err == nil {
			for target := range targets {
				if err := target.Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.Description = Description{Name: "s", Table: m.Schema.Table}
		if c, err := Compose(m, ComposeOptions{Name: "s", Job: "j"}); err == nil {
			if _, err := EncodeManifest(c.Manifest); err != nil {
				t.Fatalf("a composition cannot be written: %v", err)
			}
		}
	})
}

func FuzzDecodeDescription(f *testing.F) {
	f.Add(mustMarshal(f, &hbpb.SnapshotDescription{Name: proto.String("s"), Table: proto.String("ns:t"), Version: proto.Int32(2), Ttl: proto.Int64(60)}))
	f.Add([]byte("\x0a\x01s\x12\x01t"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := DecodeDescription(raw)
		if err != nil {
			return
		}
		if d.TTL < 0 {
			t.Fatal("negative time to live")
		}
		out, err := d.As("name", 0).Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeDescription(out)
		if err != nil || back.Table != d.Table || back.Name != "name" || back.Version != 2 {
			t.Fatalf("got %+v, %v", back, err)
		}
	})
}
