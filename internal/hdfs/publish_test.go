package hdfs

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"hbackup"
	"hbackup/internal/files"
)

// names is a name node that knows which inode has which path, and renames.
type names struct {
	mu       sync.Mutex
	inodes   map[string]uint64
	dirs     map[string]bool
	lose     int  // so many answers to rename2 are lost
	before   bool // and lost before the name node has done anything
	replaced int
	then     func(*names) // done when an answer was lost
}

func (n *names) answer(method string, request []byte) fakeAnswer {
	n.mu.Lock()
	defer n.mu.Unlock()
	src, _ := bytesField(request, 1)
	dst, _ := bytesField(request, 2)
	switch method {
	case "getServerDefaults":
		return fakeAnswer{body: defaults()}
	case "getFileInfo":
		if n.dirs[string(src)] {
			return fakeAnswer{body: field(nil, 1, status(0, 99, func(b []byte) []byte { return number(b, 1, 1) }))}
		}
		if id := n.inodes[string(src)]; id != 0 {
			return fakeAnswer{body: field(nil, 1, status(5, id))}
		}
		return fakeAnswer{}
	case "rename2":
		if n.lose > 0 && n.before {
			n.lose--
			return fakeAnswer{hangUp: true}
		}
		a := n.rename(string(src), string(dst), varintField(request, 3) != 0)
		if n.lose > 0 {
			n.lose--
			if n.then != nil {
				n.then(n)
			}
			return fakeAnswer{hangUp: true}
		}
		return a
	case renewLease:
		return fakeAnswer{}
	}
	return fakeAnswer{exception: "java.lang.UnsupportedOperationException", message: method}
}

func (n *names) rename(src, dst string, replace bool) fakeAnswer {
	switch {
	case n.inodes[src] == 0:
		return fakeAnswer{exception: "java.io.FileNotFoundException", message: "rename source " + src + " is not found."}
	case n.dirs[dst], n.inodes[dst] != 0 && !replace:
		return fakeAnswer{exception: "org.apache.hadoop.fs.FileAlreadyExistsException", message: "rename destination " + dst + " already exists"}
	case n.inodes[dst] != 0:
		n.replaced++
	}
	n.inodes[dst] = n.inodes[src]
	delete(n.inodes, src)
	return fakeAnswer{}
}

func TestPublish(t *testing.T) {
	for name, test := range map[string]struct {
		taken   bool
		lose    int
		before  bool
		replace bool
		kinds   []hbackup.Kind // none: it succeeds
	}{
		"free":                        {},
		"free, may replace":           {replace: true},
		"taken":                       {taken: true, kinds: []hbackup.Kind{hbackup.KindExists}},
		"taken, may replace":          {taken: true, replace: true},
		"answer lost":                 {lose: 1},
		"answer lost, may replace":    {lose: 1, taken: true, replace: true},
		"request lost":                {lose: 1, before: true},
		"request lost, taken":         {lose: 1, before: true, taken: true, kinds: []hbackup.Kind{hbackup.KindExists}},
		"request lost, may replace":   {lose: 2, before: true, taken: true, replace: true},
		"every request lost":          {lose: 100, before: true, kinds: []hbackup.Kind{hbackup.KindUnavailable, hbackup.KindTimeout}},
		"every request lost, replace": {lose: 100, before: true, taken: true, replace: true, kinds: []hbackup.Kind{hbackup.KindUnavailable, hbackup.KindTimeout}},
		"every answer lost":           {lose: 100},
	} {
		t.Run(name, func(t *testing.T) {
			n := &names{inodes: map[string]uint64{"/tmp/f": 7}, lose: test.lose, before: test.before}
			if test.taken {
				n.inodes["/a"] = 3
			}
			fs := connectTo(t, func(c *Config) { c.CallTimeout = 5 * time.Second }, startNameNode(t, n.answer))
			err := fs.Publish(t.Context(), files.Info{Path: "/tmp/f", ID: 7, Size: 5}, "/a", test.replace)
			if len(test.kinds) == 0 {
				if err != nil || n.inodes["/a"] != 7 || n.inodes["/tmp/f"] != 0 {
					t.Fatalf("%v; the name node has %v", err, n.inodes)
				}
				if want := map[bool]int{true: 1}[test.taken]; n.replaced != want {
					t.Errorf("%d files were replaced; want %d", n.replaced, want)
				}
				return
			}
			if !hbackup.IsKind(err, test.kinds...) {
				t.Errorf("%v (kind %q); want %q", err, hbackup.KindOf(err), test.kinds)
			}
			if n.replaced != 0 || n.inodes["/tmp/f"] != 7 || test.taken && n.inodes["/a"] != 3 {
				t.Errorf("the name node has %v, %d were replaced", n.inodes, n.replaced)
			}
		})
	}
}

// TestPublishedAndGoneSince: the answer is lost, and before anybody can look the
// file has been replaced or deleted by somebody else. It cannot be told whether
// it was published, so it must not be said that it was not.
func TestPublishedAndGoneSince(t *testing.T) {
	for name, then := range map[string]func(n *names){
		"replaced": func(n *names) { n.inodes["/a"] = 9 },
		"deleted":  func(n *names) { delete(n.inodes, "/a") },
	} {
		t.Run(name, func(t *testing.T) {
			n := &names{inodes: map[string]uint64{"/tmp/f": 7}, lose: 1, then: then}
			fs := connectTo(t, nil, startNameNode(t, n.answer))
			wantKind(t, fs.Publish(t.Context(), files.Info{Path: "/tmp/f", ID: 7, Size: 5}, "/a", true), hbackup.KindUnavailable)
		})
	}
}

// TestPublishOverAFailOver: the active name node carries the call out, or does
// not, and dies; the other one becomes active and has the same names.
func TestPublishOverAFailOver(t *testing.T) {
	for _, done := range []bool{true, false} {
		shared := &names{inodes: map[string]uint64{"/tmp/f": 7}}
		var active atomic.Int32
		node := func(i int32) *fakeNameNode {
			return startNameNode(t, func(method string, request []byte) fakeAnswer {
				switch {
				case active.Load() != i && method != renewLease:
					return fakeAnswer{exception: "org.apache.hadoop.ipc.StandbyException", message: "Operation category WRITE is not supported in state standby"}
				case method == "rename2" && i == 0:
					if done {
						shared.answer(method, request)
					}
					active.Store(1)
					return fakeAnswer{hangUp: true}
				}
				return shared.answer(method, request)
			})
		}
		first, second := node(0), node(1)
		fs := connectTo(t, nil, first, second)
		err := fs.Publish(t.Context(), files.Info{Path: "/tmp/f", ID: 7, Size: 5}, "/a", false)
		if err != nil || shared.inodes["/a"] != 7 || shared.inodes["/tmp/f"] != 0 {
			t.Fatalf("carried out %v: %v; the names are %v", done, err, shared.inodes)
		}
		if want := map[bool]int{false: 1}[done]; second.count("rename2") != want {
			t.Errorf("carried out %v: the second name node was asked to rename %d times; want %d", done, second.count("rename2"), want)
		}
	}
}

func TestPublishOnDirectory(t *testing.T) {
	n := &names{inodes: map[string]uint64{"/tmp/f": 7}, dirs: map[string]bool{"/a": true}}
	fs := connectTo(t, nil, startNameNode(t, n.answer))
	for _, replace := range []bool{false, true} {
		wantKind(t, fs.Publish(t.Context(), files.Info{Path: "/tmp/f", ID: 7}, "/a", replace), hbackup.KindConflict)
	}
	wantKind(t, fs.Publish(t.Context(), files.Info{Path: "/tmp/gone", ID: 8}, "/b", false), hbackup.KindNotFound)
	wantKind(t, fs.Publish(t.Context(), files.Info{Path: "/tmp/f", ID: 7}, "/", true), hbackup.KindRefused)
}

// A session that was allowed to replace does not keep that for its next user.
func TestReplacingIsNotInherited(t *testing.T) {
	n := &names{inodes: map[string]uint64{"/x": 1, "/y": 2, "/z": 3}}
	fs := connectTo(t, nil, startNameNode(t, n.answer))
	if err := fs.Publish(t.Context(), files.Info{Path: "/x", ID: 1}, "/y", true); err != nil || n.replaced != 1 {
		t.Fatalf("%v, %d replaced", err, n.replaced)
	}
	wantKind(t, fs.Publish(t.Context(), files.Info{Path: "/z", ID: 3}, "/y", false), hbackup.KindExists)
}

func FuzzWithoutOverwrite(f *testing.F) {
	packet := func(request []byte) []byte {
		b := protowire.AppendBytes([]byte{0, 0, 0, 0}, []byte("\x18\x02"))
		b = protowire.AppendBytes(b, field(nil, 1, []byte("rename2")))
		return protowire.AppendBytes(b, request)
	}
	f.Add(packet(number(field(field(nil, 1, []byte("/a")), 2, []byte("/b")), 3, 1)))
	f.Add(packet(field(nil, 1, []byte("/a"))))
	f.Add(packet(number(number(nil, 3, 1), 3, 1)))
	f.Add(packet(number(nil, 3, 300)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, err := withoutOverwrite(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the packet itself was changed")
		}
		if err != nil {
			return
		}
		differ := 0
		for i := range got {
			if got[i] != b[i] {
				differ++
			}
		}
		_, rest, _ := delimited(got[4:])
		_, rest, _ = delimited(rest)
		request, _, _ := delimited(rest)
		if len(got) != len(b) || differ > 1 || varintField(request, 3) != 0 {
			t.Fatalf("%x became %x", b, got)
		}
	})
}
