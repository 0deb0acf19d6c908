package rootfs

import (
	"bytes"
	"io"
	"path"
	"testing"
	"time"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// A restart of HDFS in the middle of reading and calling is waited for.
func TestRestart(t *testing.T) {
	f := &faults{}
	f.nameNode = cluster.Address()
	fs := connect(t, func(c *rootfs.Config) { c.Dial = f.dial; c.RetryFor = 2 * time.Minute })
	dir := directory(t, fs)
	want := content(9 << 20)
	write(t, fs, path.Join(dir, "f"), want)
	r, _, err := fs.Open(t.Context(), path.Join(dir, "f"), 0)
	must(t, err)
	defer r.Close()
	got := make([]byte, 1<<20)
	_, err = io.ReadFull(r, got)
	must(t, err)
	w, err := fs.Create(t.Context(), path.Join(dir, "g"))
	must(t, err)
	_, err = w.Write(want[:2<<20])
	must(t, err)

	cluster.Kill()
	_, err = rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{cluster.Address()}, User: cluster.User(), RetryFor: -1})
	wantKind(t, err, hbackup.KindUnavailable)
	if hbackup.HintOf(err) == "" {
		t.Error("no hint")
	}
	down := make(chan error, 1)
	go func() { _, err := fs.Stat(t.Context(), path.Join(dir, "f")); down <- err }()
	must(t, cluster.Restart(t.Context()))
	must(t, <-down)

	rest, err := io.ReadAll(r)
	must(t, err)
	if !bytes.Equal(append(got, rest...), want) {
		t.Error("other bytes came")
	}
	// The write did not survive: it must say so, and its file must go.
	_, err = w.Write(want[2<<20:])
	if err == nil {
		err = w.Close()
	} else {
		must(t, w.Abort())
	}
	if err == nil {
		t.Error("a write over the restart gave no error")
	}
	_, err = fs.Stat(t.Context(), path.Join(dir, "g"))
	wantKind(t, err, hbackup.KindNotFound)
}
