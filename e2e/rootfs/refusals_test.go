package rootfs

import (
	"errors"
	"io"
	"path"
	"testing"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// A file that is still being written is refused whatever its length looks like.
func TestOpenForWriting(t *testing.T) {
	fs := connect(t, nil)
	dir := directory(t, fs)
	for name, size := range map[string]int{"nothing written": 0, "part of a block": 300_000, "whole blocks": 2 << 20, "blocks and a part": 5<<20 + 100_000} {
		t.Run(name, func(t *testing.T) {
			p := path.Join(dir, path.Base(t.Name()))
			w, err := fs.Create(t.Context(), p)
			must(t, err)
			_, err = w.Write(make([]byte, size))
			must(t, err)
			for _, offset := range []int64{0, 1 << 20} {
				info, err := fs.Stat(t.Context(), p)
				must(t, err)
				if offset > info.Size {
					continue
				}
				_, _, err = fs.Open(t.Context(), p, offset)
				wantKind(t, err, hbackup.KindUnsupported)
				if !errors.Is(err, rootfs.ErrOpenForWriting) {
					t.Errorf("from %d: %v", offset, err)
				}
			}
			must(t, w.Close())
			r, info, err := fs.Open(t.Context(), p, 0)
			must(t, err)
			n, err := io.Copy(io.Discard, r)
			must(t, err)
			must(t, r.Close())
			if n != int64(size) || info.Size != n {
				t.Errorf("%d bytes read, %d said, %d written", n, info.Size, size)
			}
		})
	}
}

// An erasure-coded file is refused, and none is made.
func TestErasureCoded(t *testing.T) {
	fs := connect(t, nil)
	dir := directory(t, fs)
	webhdfs(t, "PUT", "/", "op=ENABLEECPOLICY&ecpolicy=XOR-2-1-1024k")
	webhdfs(t, "PUT", dir, "op=SETECPOLICY&ecpolicy=XOR-2-1-1024k")
	_, err := fs.Create(t.Context(), path.Join(dir, "new"))
	wantKind(t, err, hbackup.KindUnsupported)
	if !errors.Is(err, rootfs.ErrErasureCoded) {
		t.Error(err)
	}
	_, err = fs.Stat(t.Context(), path.Join(dir, "new"))
	wantKind(t, err, hbackup.KindNotFound)

	webhdfs(t, "PUT", path.Join(dir, "java"), "op=CREATE")
	_, _, err = fs.Open(t.Context(), path.Join(dir, "java"), 0)
	wantKind(t, err, hbackup.KindUnsupported)
	if !errors.Is(err, rootfs.ErrErasureCoded) {
		t.Error(err)
	}
}

func TestPermissions(t *testing.T) {
	fs := connect(t, nil)
	dir := directory(t, fs)
	must(t, fs.MkdirAll(t.Context(), path.Join(dir, "closed")))
	w, err := fs.Create(t.Context(), path.Join(dir, "closed", "f"))
	must(t, err)
	must(t, w.Close())
	webhdfs(t, "PUT", path.Join(dir, "closed"), "op=SETPERMISSION&permission=700")

	stranger := connect(t, func(c *rootfs.Config) { c.User = "stranger" })
	_, err = stranger.Create(t.Context(), path.Join(dir, "mine"))
	wantKind(t, err, hbackup.KindDenied)
	if hbackup.HintOf(err) == "" {
		t.Error("no hint")
	}
	_, _, err = stranger.Open(t.Context(), path.Join(dir, "closed", "f"), 0)
	wantKind(t, err, hbackup.KindDenied)
	_, err = stranger.Stat(t.Context(), path.Join(dir, "closed", "f"))
	wantKind(t, err, hbackup.KindDenied)
	_, err = stranger.ReadDir(t.Context(), path.Join(dir, "closed"))
	wantKind(t, err, hbackup.KindDenied)
	wantKind(t, stranger.Remove(t.Context(), path.Join(dir, "closed", "f")), hbackup.KindDenied)
	wantKind(t, stranger.RemoveAll(t.Context(), path.Join(dir, "closed")), hbackup.KindDenied)
	wantKind(t, stranger.MkdirAll(t.Context(), path.Join(dir, "closed", "d")), hbackup.KindDenied)
	_, err = fs.Stat(t.Context(), path.Join(dir, "closed", "f"))
	must(t, err)
}

func TestQuota(t *testing.T) {
	fs := connect(t, nil)
	dir := directory(t, fs)
	webhdfs(t, "PUT", dir, "op=SETQUOTA&namespacequota=3&storagespacequota=3000000")
	w, err := fs.Create(t.Context(), path.Join(dir, "big"))
	must(t, err)
	_, err = w.Write(make([]byte, 4<<20))
	if err == nil {
		err = w.Close()
	} else {
		must(t, w.Abort())
	}
	wantKind(t, err, hbackup.KindNoSpace)
	_, err = fs.Stat(t.Context(), path.Join(dir, "big"))
	wantKind(t, err, hbackup.KindNotFound)
	must(t, fs.MkdirAll(t.Context(), path.Join(dir, "a/b")))
	wantKind(t, fs.MkdirAll(t.Context(), path.Join(dir, "c")), hbackup.KindNoSpace)
	_, err = fs.Create(t.Context(), path.Join(dir, "f"))
	wantKind(t, err, hbackup.KindNoSpace)
}
