package hdfsstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// TestNameNodePair fails over between two name nodes, in good order and by kill -9,
// while files are written, read and listed and keys are raced for. Nobody notices:
// what is asked for is done, once.
func TestNameNodePair(t *testing.T) {
	pair := servers.ForTest(t).HDFSPair(servers.HDFSOptions{Extra: servers.Settings{
		"dfs.blocksize": "1048576", "dfs.namenode.fs-limits.min-block-size": "1048576",
	}})
	var web []string
	for _, a := range pair.HTTPAddresses() {
		web = append(web, "http://"+a)
	}
	active := 0
	handOver := func() error {
		old := active
		active = 1 - active
		if err := pair.Become(t.Context(), old, "standby"); err != nil {
			return err
		}
		return pair.Become(t.Context(), active, "active")
	}
	kill := func() error {
		old := active
		active = 1 - active
		pair.Kill(old)
		return pair.Become(t.Context(), active, "active")
	}
	for _, c := range []struct {
		name string
		cfg  hdfs.Config
	}{
		{"natively", hdfs.Config{NameNodes: pair.Addresses()}},
		{"over HTTP", hdfs.Config{WebHDFS: web}},
	} {
		s := openAt(t, fmt.Sprintf("%s/%x", pair.URI(), rand.Uint64()), c.cfg)
		other := openAt(t, string(s.Location()), c.cfg)
		t.Run(c.name+", handed over", func(t *testing.T) { failOver(t, s, other, "handed", handOver) })
		t.Run(c.name+", killed", func(t *testing.T) {
			failOver(t, s, other, "killed", kill)
			must(t, pair.Start(t.Context(), 1-active))
		})
	}
}

// failOver has a put, a read and a listing in their middle, and others at work all
// the time, when the name nodes change roles.
func failOver(t *testing.T, s, other storage.Store, name string, change func() error) {
	folder := storage.Key(name + "/")
	first := noise(1, 5<<20)
	_, err := s.Put(t.Context(), folder+"first", bytes.NewReader(first), storage.PutOptions{Size: int64(len(first))})
	must(t, err)
	read, _, err := s.Get(t.Context(), folder+"first", storage.Range{})
	must(t, err)
	defer read.Close()
	half := make([]byte, len(first)/2)
	_, err = io.ReadFull(read, half)
	must(t, err)

	stop := contest(t, s, other, folder)
	second := noise(2, 5<<20)
	body := &hookedReader{r: bytes.NewReader(second), at: len(second) / 2, hook: change}
	_, err = s.Put(t.Context(), folder+"second", body, storage.PutOptions{Size: int64(len(second)), IfAbsent: true})
	must(t, err)
	rest, err := io.ReadAll(read)
	must(t, err)
	if !bytes.Equal(slices.Concat(half, rest), first) {
		t.Error("a file that was being read has other bytes")
	}
	keys := stop()

	got, _, err := storage.ReadAll(t.Context(), s, folder+"second", 16<<20)
	must(t, err)
	if !bytes.Equal(got, second) {
		t.Error("a file that was being written has other bytes")
	}
	want := append(keys, folder+"first", folder+"second")
	slices.Sort(want)
	var listed []storage.Key
	for o, err := range s.List(t.Context(), string(folder), storage.ListOptions{}) {
		must(t, err)
		listed = append(listed, o.Key)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("listed %d keys: %v, want %d: %v", len(listed), listed, len(want), want)
	}
}

// contest lets two stores race for one key after the other until it is stopped: one
// of the two gets each. Stopping gives the keys, after some that were raced for when
// the change was over.
func contest(t *testing.T, s, other storage.Store, folder storage.Key) (stop func() []storage.Key) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	var keys []storage.Key
	go func() {
		defer close(done)
		for n, left := 0, 5; left > 0; n++ {
			if ctx.Err() != nil {
				left--
			}
			key := folder + storage.Key(fmt.Sprintf("record-%05d", n))
			var r race
			var wg sync.WaitGroup
			for i, at := range []storage.Store{s, other} {
				wg.Go(func() { r.put(t, at, key, fmt.Sprintf("%d of %d", i, n)) })
			}
			wg.Wait()
			if len(r.won) != 1 {
				t.Errorf("%s was won by %q, of %q nobody knows", key, r.won, r.unknown)
			}
			r.check(t, s, key)
			keys = append(keys, key)
		}
	}()
	stop = func() []storage.Key {
		cancel()
		<-done
		return keys
	}
	t.Cleanup(func() { stop() }) // when the test fails before it stops it
	return stop
}

// hookedReader calls the hook once, when that many bytes have been read.
type hookedReader struct {
	r    io.Reader
	at   int
	hook func() error
}

func (h *hookedReader) Read(p []byte) (int, error) {
	if h.at == 0 && h.hook != nil {
		hook := h.hook
		h.hook = nil
		if err := hook(); err != nil {
			return 0, err
		}
	}
	if h.at > 0 {
		p = p[:min(len(p), h.at)]
	}
	n, err := h.r.Read(p)
	h.at -= min(n, h.at)
	return n, err
}

// noise gives bytes that are the same for the same seed.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}
