package hdfs

import (
	"sync/atomic"
	"testing"

	"hbackup"
)

// A writer that was taken for dead may find that another has removed its file and
// writes one of its own under the name. Giving up, it removes its own and no other.
func TestAWriterRemovesOnlyItsOwnFile(t *testing.T) {
	for _, sealed := range []bool{false, true} { // whether create's answer tells the inode
		for name, test := range map[string]struct {
			there   uint64 // inode under the name when the writer gives up
			deletes int
		}{
			"its own":     {7, 1},
			"another's":   {9, 0},
			"none":        {0, 0},
			"cannot tell": {1 << 62, 1}, // answered without an inode
		} {
			t.Run(name, func(t *testing.T) {
				var now atomic.Uint64
				var aborting atomic.Bool
				now.Store(7)
				answer := func(method string, request []byte) fakeAnswer {
					switch method {
					case "getServerDefaults":
						return fakeAnswer{body: defaults()}
					case "create":
						if sealed {
							return fakeAnswer{body: field(nil, 1, status(0, 0))}
						}
						return fakeAnswer{body: field(nil, 1, status(0, 7))}
					case "getFileInfo":
						switch {
						case aborting.Load() && now.Load() == 0:
							return fakeAnswer{}
						case aborting.Load() && now.Load() == 1<<62:
							return fakeAnswer{body: field(nil, 1, status(0, 0))}
						}
						return fakeAnswer{body: field(nil, 1, status(0, now.Load()))}
					case "delete":
						return fakeAnswer{body: number(nil, 1, 1)}
					case renewLease, "complete":
						return fakeAnswer{body: number(nil, 1, 1)}
					}
					return fakeAnswer{exception: "java.lang.UnsupportedOperationException", message: method}
				}
				nn := startNameNode(t, answer)
				fs := connectTo(t, nil, nn)
				w, err := fs.Create(t.Context(), "/dir/f")
				if err != nil {
					t.Fatal(err)
				}
				now.Store(test.there)
				aborting.Store(true)
				if err := w.Abort(); err != nil {
					t.Error(err)
				}
				if n := nn.count("delete"); n != test.deletes {
					t.Errorf("%d calls to delete, want %d", n, test.deletes)
				}
			})
		}
	}
}

// The active name node becomes a standby while a file is written: the other one
// closes it. When it dies, the answer to the closing is lost; that file is removed, with
// an error after which the caller tries again, and the next one is written by the other.
func TestWriteOverAFailOver(t *testing.T) {
	for _, dies := range []bool{false, true} {
		var active atomic.Int32
		node := func(i int32) *fakeNameNode {
			return startNameNode(t, func(method string, request []byte) fakeAnswer {
				if active.Load() != i && method != renewLease {
					return fakeAnswer{exception: "org.apache.hadoop.ipc.StandbyException", message: "Operation category WRITE is not supported in state standby"}
				}
				switch method {
				case "getServerDefaults":
					return fakeAnswer{body: defaults()}
				case "create", "getFileInfo":
					return fakeAnswer{body: field(nil, 1, status(0, 7))}
				}
				return fakeAnswer{body: number(nil, 1, 1)} // complete, renewLease
			})
		}
		first, second := node(0), node(1)
		fs := connectTo(t, nil, first, second)
		w, err := fs.Create(t.Context(), "/dir/f")
		if err != nil {
			t.Fatal(err)
		}
		if active.Store(1); dies {
			first.stop()
		}
		err = w.Close()
		if dies {
			wantKind(t, err, hbackup.KindUnavailable)
			if w, err = fs.Create(t.Context(), "/dir/f"); err != nil {
				t.Fatal(err)
			}
			err = w.Close()
		}
		if err != nil || w.Info().ID != 7 {
			t.Errorf("dies %v: %+v, %v", dies, w.Info(), err)
		}
		removed := map[bool]int{true: 1}[dies]
		if second.count("complete") != 1 || second.count("delete") != removed {
			t.Errorf("dies %v: %v, then %v", dies, first.calls, second.calls)
		}
	}
}
