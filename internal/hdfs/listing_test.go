package hdfs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
	"hbackup/internal/files"
)

// directory answers for a file system with one directory, /d, that lists a few
// names at a time.
type directory struct {
	names   []string // in the name node's order
	perCall int
	stuck   bool // always list from the first name on

	mu       sync.Mutex
	starts   []string // of the calls of getListing
	deleted  []string
	notEmpty bool
}

func (d *directory) answer(method string, request []byte) fakeAnswer {
	d.mu.Lock()
	defer d.mu.Unlock()
	src, _ := bytesField(request, 1)
	dirStatus := status(0, 42, func(b []byte) []byte { return number(b, 1, 1) })
	switch method {
	case "getServerDefaults":
		return fakeAnswer{body: defaults()}
	case "getFileInfo":
		switch string(src) {
		case "/d", "/.reserved/.inodes/42":
			return fakeAnswer{body: field(nil, 1, dirStatus)}
		case "/f":
			return fakeAnswer{body: field(nil, 1, status(5, 7))}
		}
		return fakeAnswer{}
	case "getListing":
		start, _ := bytesField(request, 2)
		d.starts = append(d.starts, string(start))
		from := slices.Index(d.names, string(start)) + 1
		if d.stuck {
			from = 0
		}
		to := min(len(d.names), from+d.perCall)
		var list []byte
		for i, name := range d.names[from:to] {
			list = field(list, 1, bytes.Replace(status(1, uint64(100+i)), []byte("\x12\x01f"), field(nil, 2, []byte(name)), 1))
		}
		return fakeAnswer{body: field(nil, 1, number(list, 2, uint64(len(d.names)-to)))}
	case "delete":
		if d.notEmpty {
			return fakeAnswer{exception: "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", message: "`" + string(src) + " is non empty': Directory is not empty"}
		}
		d.deleted = append(d.deleted, string(src))
		return fakeAnswer{body: number(nil, 1, 1)}
	case renewLease:
		return fakeAnswer{}
	}
	return fakeAnswer{exception: "java.lang.UnsupportedOperationException", message: method}
}

func TestReadDirPage(t *testing.T) {
	for _, test := range []struct{ names, perCall int }{
		{0, 10}, {1, 10}, {files.PageSize, files.PageSize}, {files.PageSize + 1, files.PageSize}, {2*files.PageSize + 3, 7}, {files.PageSize + 5, 3 * files.PageSize},
	} {
		t.Run(fmt.Sprintf("%d by %d", test.names, test.perCall), func(t *testing.T) {
			d := &directory{perCall: test.perCall}
			for i := range test.names {
				d.names = append(d.names, fmt.Sprintf("n%05d", i))
			}
			fs := connectTo(t, nil, startNameNode(t, d.answer))
			var got []string
			for after, pages := "", 0; ; pages++ {
				page, err := fs.ReadDirPage(t.Context(), "/d", after)
				if err != nil {
					t.Fatal(err)
				}
				for _, info := range page {
					got = append(got, info.Name)
					if info.Path != "/d/"+info.Name {
						t.Fatalf("%+v", info)
					}
				}
				if len(page) < files.PageSize {
					break
				}
				if len(page) > files.PageSize || pages > 5 {
					t.Fatalf("page %d has %d names", pages, len(page))
				}
				after = page[files.PageSize-1].Name
			}
			if !slices.Equal(got, d.names) {
				t.Errorf("%d names; want %d", len(got), len(d.names))
			}
			// What a page's listing starts with is not kept for another one's.
			if all, err := fs.ReadDir(t.Context(), "/d"); err != nil || len(all) != test.names {
				t.Errorf("ReadDir gives %d names, %v", len(all), err)
			}
		})
	}
}

func TestReadDirPageFailures(t *testing.T) {
	d := &directory{names: []string{"a", "b"}, perCall: 10, stuck: true}
	fs := connectTo(t, nil, startNameNode(t, d.answer))
	_, err := fs.ReadDirPage(t.Context(), "/d", "b")
	wantKind(t, err, hbackup.KindCorrupt)
	_, err = fs.ReadDirPage(t.Context(), "/f", "")
	wantKind(t, err, hbackup.KindConflict)
	_, err = fs.ReadDirPage(t.Context(), "/gone", "")
	wantKind(t, err, hbackup.KindNotFound)
}

// TestRemoveEmptyDir: a directory goes by its number, and a file never goes.
func TestRemoveEmptyDir(t *testing.T) {
	d := &directory{}
	fs := connectTo(t, nil, startNameNode(t, d.answer))
	wantKind(t, fs.RemoveEmptyDir(t.Context(), "/f"), hbackup.KindNotFound)
	wantKind(t, fs.RemoveEmptyDir(t.Context(), "/gone"), hbackup.KindNotFound)
	if err := fs.RemoveEmptyDir(t.Context(), "/d"); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.notEmpty = true
	d.mu.Unlock()
	wantKind(t, fs.RemoveEmptyDir(t.Context(), "/d"), hbackup.KindConflict)
	if want := []string{"/.reserved/.inodes/42"}; !slices.Equal(d.deleted, want) {
		t.Errorf("deleted were %q; want %q", d.deleted, want)
	}
}

func FuzzWithStart(f *testing.F) {
	packet := func(request []byte) []byte {
		b := protowire.AppendBytes(nil, []byte("\x18\x02"))
		b = protowire.AppendBytes(b, field(nil, 1, []byte("getListing")))
		b = protowire.AppendBytes(b, request)
		return append([]byte{0, 0, 0, byte(len(b))}, b...)
	}
	f.Add(packet(number(field(field(nil, 1, []byte("/a")), 2, nil), 3, 0)), "name")
	f.Add(packet(number(field(field(nil, 1, []byte("/a")), 2, []byte("x")), 3, 0)), "name")
	f.Add(packet(nil), strings.Repeat("long", 100))
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, b []byte, after string) {
		before := bytes.Clone(b)
		got, err := withStart(b, after)
		if !bytes.Equal(b, before) {
			t.Fatal("the packet itself was changed")
		}
		if err != nil || bytes.Equal(got, b) {
			return
		}
		head, rest, ok := delimited(got[4:])
		oldHead, oldRest, _ := delimited(b[4:])
		call, rest, ok2 := delimited(rest)
		oldCall, oldRest, _ := delimited(oldRest)
		request, rest, ok3 := delimited(rest)
		oldRequest, _, _ := delimited(oldRest)
		start, _ := bytesField(request, 2)
		if !ok || !ok2 || !ok3 || len(rest) > 0 || !bytes.Equal(head, oldHead) || !bytes.Equal(call, oldCall) || !bytes.HasPrefix(request, oldRequest) {
			t.Fatalf("%x became %x", b, got)
		}
		if valid(oldRequest) && string(start) != after {
			t.Fatalf("the start is %q, not %q, in %x", start, after, got)
		}
	})
}

// valid reports whether every field of a message can be read.
func valid(b []byte) bool {
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}
