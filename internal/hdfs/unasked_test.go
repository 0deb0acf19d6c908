package hdfs

import (
	"testing"

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
