package rpc

import (
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup/hbase/hbpb"
)

func TestServerName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := ServerName{
			Host: rapid.StringMatching(`[a-z][a-z0-9.-]{0,20}`).Draw(t, "host"), Port: rapid.IntRange(1, 65535).Draw(t, "port"),
			StartCode: rapid.Int64Range(0, 1<<62).Draw(t, "start"),
		}
		got, err := ParseServerName(want.String())
		if err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
		if got, err = serverName(want.proto()); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
	})
	for _, bad := range []string{"", "h", "h,1", ",1,2", "h,0,1", "h,70000,1", "h,x,1", "h,1,x", "h,1,-1", "h,1,2,3"} {
		if s, err := ParseServerName(bad); err == nil {
			t.Errorf("%q: %v", bad, s)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"2.6.4-hadoop3": {2, 6, 4, "2.6.4-hadoop3"}, "3.0.0-alpha-4": {3, 0, 0, "3.0.0-alpha-4"}, "2.5": {2, 5, 0, "2.5"},
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "2", "x.y", "2.-1", "2.70000"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q: %+v", bad, v)
		}
	}
	v := Version{Major: 2, Minor: 6}
	if !v.AtLeast(2, 6) || !v.AtLeast(2, 5) || !v.AtLeast(1, 9) || v.AtLeast(2, 7) || v.AtLeast(3, 0) {
		t.Error("AtLeast")
	}
}

// Names that real servers gave.
func TestRegionNames(t *testing.T) {
	meta := RegionInfo{Table: metaTable, ID: 1}
	if string(meta.Name()) != "hbase:meta,,1" {
		t.Errorf("meta is %q", meta.Name())
	}
	r := RegionInfo{Table: mustTable("t11"), ID: 1796082254155}
	if got := string(r.Name()); got != "t11,,1796082254155.d44e429fdaa13b2e8ba0c57ff3e2a251." {
		t.Errorf("region is %q", got)
	}
	if err := r.Encoded().Validate(); err != nil {
		t.Error(err)
	}
	replica := r
	replica.Replica = 1
	if replica.Encoded() == r.Encoded() || string(replica.prefix()) != "t11,,1796082254155_0001" {
		t.Errorf("replica is %q", replica.Name())
	}
}

func FuzzMetaRow(f *testing.F) {
	info, err := proto.Marshal(&hbpb.RegionInfo{RegionId: proto.Uint64(1), TableName: tableProto(tbl), StartKey: []byte("a")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("ns:t,a,1.x."), append([]byte("PBUF"), info...), []byte("host:16020"), binary.BigEndian.AppendUint64(nil, 5), []byte("OPEN"))
	f.Add([]byte{}, []byte("PBUF"), []byte("::1"), []byte{1}, []byte{0xFF, '\n'})
	f.Fuzz(func(t *testing.T, key, info, server, start, state []byte) {
		row := Row{Key: key}
		for q, v := range map[string][]byte{"regioninfo": info, "server": server, "serverstartcode": start, "state": state} {
			row.Cells = append(row.Cells, Cell{Row: key, Family: []byte("info"), Qualifier: []byte(q), Value: v})
		}
		if r, ok, err := parseMetaRow(row); err == nil && ok {
			_ = r.Name()
			if len(r.State) > 60 {
				t.Fatal(len(r.State))
			}
		}
	})
}
