package hdfs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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

// writingNode answers a writer as the active name node does while serves says so.
func writingNode(t *testing.T, refusal fakeAnswer, serves func() bool) *fakeNameNode {
	return startNameNode(t, func(method string, request []byte) fakeAnswer {
		switch {
		case !serves() && method != renewLease:
			return refusal
		case method == "getServerDefaults":
			return fakeAnswer{body: defaults()}
		case method == "create", method == "getFileInfo":
			return fakeAnswer{body: field(nil, 1, status(0, 7))}
		}
		return fakeAnswer{body: number(nil, 1, 1)} // complete, delete, renewLease
	})
}

var standby = fakeAnswer{exception: "org.apache.hadoop.ipc.StandbyException", message: "Operation category WRITE is not supported in state standby"}

// The name nodes change roles while a file is written, in whatever way: the other one
// closes it, and it is not written again.
func TestWriteOverAFailOver(t *testing.T) {
	for name, test := range map[string]struct {
		refusal fakeAnswer
		stop    bool // the first name node
		late    int  // how often the second one refuses before it is active
	}{
		"handed over":               {refusal: standby},
		"dead":                      {refusal: standby, stop: true},
		"answer lost":               {refusal: fakeAnswer{hangUp: true}},
		"half an answer":            {refusal: fakeAnswer{raw: []byte{0, 0, 0, 20, 1}, hangUp: true}},
		"no answer":                 {refusal: fakeAnswer{hang: true}},
		"dead, the other one late":  {refusal: standby, stop: true, late: 3},
		"still in its safe mode":    {refusal: fakeAnswer{exception: "org.apache.hadoop.hdfs.server.namenode.SafeModeException", message: "Name node is in safe mode"}, late: 2},
		"still starting, then lost": {refusal: fakeAnswer{exception: "org.apache.hadoop.ipc.RetriableException", message: "NameNode still not started"}, late: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var over atomic.Bool
			var asked atomic.Int32
			first := writingNode(t, test.refusal, func() bool { return !over.Load() })
			second := writingNode(t, test.refusal, func() bool { return over.Load() && asked.Add(1) > int32(test.late) })
			fs := connectTo(t, func(c *Config) { c.CallTimeout = time.Second }, first, second)
			w, err := fs.Create(t.Context(), "/dir/f")
			if err != nil {
				t.Fatal(err)
			}
			if over.Store(true); test.stop {
				first.stop()
			}
			if err := w.Close(); err != nil || w.Info().ID != 7 {
				t.Errorf("%+v, %v", w.Info(), err)
			}
			if second.count("create", "delete") != 0 {
				t.Errorf("the file was begun anew: %v, then %v", first.calls, second.calls)
			}
		})
	}
}

// When no name node becomes active the patience ends, and so does the writer's
// context, which is obeyed at once.
func TestWriteWithoutNameNodes(t *testing.T) {
	open := func(t *testing.T, retryFor time.Duration) (*Writer, context.CancelCauseFunc) {
		var over atomic.Bool
		node := func() *fakeNameNode { return writingNode(t, standby, func() bool { return !over.Load() }) }
		fs := connectTo(t, func(c *Config) { c.RetryFor = retryFor }, node(), node())
		ctx, cancel := context.WithCancelCause(t.Context())
		t.Cleanup(func() { cancel(nil) })
		w, err := fs.Create(ctx, "/dir/f")
		if err != nil {
			t.Fatal(err)
		}
		over.Store(true)
		return w, cancel
	}
	w, _ := open(t, time.Second)
	wantKind(t, w.Close(), hbackup.KindUnavailable)

	w, cancel := open(t, time.Hour)
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	gone := errors.New("no longer wanted")
	cancel(hbackup.E("stop", "", hbackup.KindInterrupted, gone))
	if err := <-closed; !errors.Is(err, gone) || !hbackup.IsKind(err, hbackup.KindInterrupted) {
		t.Errorf("the error is %v", err)
	}
}

// A completion whose answer is lost is asked for again, and the name node has no open
// file any more. If it is this one, closed at its size, it was completed.
func TestCompletionAskedForAgain(t *testing.T) {
	for name, test := range map[string]struct {
		inode uint64 // of what is there
		size  uint64
		open  bool
		ok    bool
	}{
		"completed":      {7, 0, false, true},
		"another's":      {9, 0, false, false},
		"another size":   {7, 5, false, false},
		"still open":     {7, 0, true, false},
		"gone meanwhile": {0, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			nn := startNameNode(t, func(method string, request []byte) fakeAnswer {
				switch method {
				case "getServerDefaults":
					return fakeAnswer{body: defaults()}
				case "create":
					return fakeAnswer{body: field(nil, 1, status(0, 7))}
				case "getFileInfo":
					if test.inode == 0 {
						return fakeAnswer{}
					}
					return fakeAnswer{body: field(nil, 1, status(test.size, test.inode))}
				case "getBlockLocations":
					return fakeAnswer{body: field(nil, 1, located(test.size, test.open))}
				case "complete":
					return fakeAnswer{exception: "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", message: "File is not open for writing"}
				}
				return fakeAnswer{body: number(nil, 1, 1)}
			})
			w, err := connectTo(t, nil, nn).Create(t.Context(), "/dir/f")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
