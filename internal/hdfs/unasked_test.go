package hdfs

import (
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
	"hbackup/internal/files"
)

// TestRenameIsOneCall: the library's look at the new name is answered here, and the
// next look at a file goes to the name node again.
func TestRenameIsOneCall(t *testing.T) {
	n := &names{inodes: map[string]uint64{"/tmp/x": 7}}
	node := startNameNode(t, n.answer)
	fs := connectTo(t, nil, node)
	if err := fs.Publish(t.Context(), files.Info{Path: "/tmp/x", ID: 7}, "/d/a", false); err != nil {
		t.Fatal(err)
	}
	if renames, looks := node.count("rename2"), node.count(getFileInfo); renames != 1 || looks != 0 {
		t.Errorf("%d renames and %d looks", renames, looks)
	}
	if info, err := fs.Stat(t.Context(), "/d/a"); err != nil || info.ID != 7 || node.count(getFileInfo) != 1 {
		t.Errorf("%+v, %v after %d looks", info, err, node.count(getFileInfo))
	}
}

// TestMkdirAllIsOneCall, unless the name node says no: then it is asked what there
// is.
func TestMkdirAllIsOneCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		made   uint64
		exists bool
		looks  int
		kind   hbackup.Kind
	}{
		{"made", 1, false, 0, ""},
		{"refused", 0, false, 1, hbackup.KindNotFound},
		{"there after all", 0, true, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &names{inodes: map[string]uint64{}, dirs: map[string]bool{"/d/e": c.exists}}
			node := startNameNode(t, func(method string, request []byte) fakeAnswer {
				if method == mkdirs {
					return fakeAnswer{body: number(nil, 1, c.made)}
				}
				return n.answer(method, request)
			})
			err := connectTo(t, nil, node).MkdirAll(t.Context(), "/d/e")
			if (err != nil) != (c.kind != "") || c.kind != "" && !hbackup.IsKind(err, c.kind) {
				t.Errorf("got %v", err)
			}
			if calls, looks := node.count(mkdirs), node.count(getFileInfo); calls != 1 || looks != c.looks {
				t.Errorf("%d calls and %d looks", calls, looks)
			}
		})
	}
}

// TestEveryCompletionNamesTheLastBlock: the library names it once, and the name node
// may not have taken note of it then.
func TestEveryCompletionNamesTheLastBlock(t *testing.T) {
	body := field(field(nil, 1, []byte("/d/a")), 2, []byte("client"))
	packet := func(body []byte) []byte {
		b := protowire.AppendBytes(nil, number(nil, 3, protowire.EncodeZigZag(5)))
		b = protowire.AppendBytes(protowire.AppendBytes(b, field(nil, 1, []byte(complete))), body)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	s := &session{}
	named := packet(field(body, lastBlockField, []byte("the block")))
	for _, c := range []struct{ what, sent, want string }{
		{"before any block", string(packet(body)), ""},
		{"the first", string(named), "the block"},
		{"the next", string(packet(body)), "the block"},
	} {
		s.completing([]byte(c.sent))
		amended, err := s.amended(complete, []byte(c.sent))
		if err != nil {
			t.Fatal(c.what, err)
		}
		method, id := requestMethod(amended)
		last, _ := bytesField(requestBody(amended), lastBlockField)
		src, _ := bytesField(requestBody(amended), 1)
		if method != complete || id != 5 || string(last) != c.want || string(src) != "/d/a" || binary.BigEndian.Uint32(amended) != uint32(len(amended)-4) {
			t.Errorf("%s: %s %d of %s with the block %q", c.what, method, id, src, last)
		}
	}
	if _, err := withLastBlock([]byte("no request"), []byte("x")); err == nil {
		t.Error("what is no request was amended")
	}
}
