package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

// digestless is a store that keeps no digests, as a directory does.
type digestless struct{ storage.Store }

func (d digestless) Capabilities() storage.Capabilities {
	c := d.Store.Capabilities()
	c.StoredDigest = false
	return c
}

func (d digestless) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	o, err := d.Store.Stat(ctx, key)
	o.Digest, o.HasDigest = 0, false
	return o, err
}

func (w *world) journaling(store storage.Store, skip bool) (backup.Result, error) {
	return backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main"},
		backup.Options{Files: 1, SkipChecksums: skip, Journal: backup.JournalBounds{Files: 5}})
}

// copiedRecords gives the records of copied files that are in the location.
func (w *world) copiedRecords(t *testing.T) (keys []storage.Key) {
	t.Helper()
	for o, err := range w.folder().List(context.Background(), catalog.CopiedPrefix("r"), storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

// killedLate gives a world whose request was killed when it had copied 36 of 40 files
// and put 35 on record.
func killedLate(t *testing.T, skip bool) *world {
	w := newWorld(t)
	for len(w.tables[orders].files) < 40 {
		w.addFile(t, orders, "2.6-none.hfile")
	}
	if !w.kill(t, newDying(w.store.(*mem.Store), nth(37, "put", "archive/")), "r",
		backup.Options{Files: 1, SkipChecksums: skip, Journal: backup.JournalBounds{Files: 5}}) {
		t.Fatal("it was not killed")
	}
	w.advance(2 * time.Minute)
	if n := len(w.copiedRecords(t)); n != 7 {
		t.Fatalf("%d records", n)
	}
	return w
}

// goOn runs the request again and gives what was read: files of the cluster, and
// bytes of store files in the location.
func (w *world) goOn(t *testing.T, digests, skip bool) (source int, location int64) {
	t.Helper()
	fs := w.fs
	w.fs = hookedFS{fs, func(path string) {
		if strings.Contains(path, "/data/ns/orders/") {
			source++
		}
	}}
	defer func() { w.fs = fs }()
	records := int64(0)
	for _, k := range w.copiedRecords(t) {
		o, err := w.folder().Stat(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		records += o.Size
	}
	m := metered.New(w.store)
	var s storage.Store = m
	if !digests {
		s = digestless{m}
	}
	r, err := w.journaling(s, skip)
	if err != nil || r.State != catalog.StateComplete {
		t.Fatalf("again: %+v, %v", r, err)
	}
	if n := len(w.images(t)); n != 1 {
		t.Errorf("%d images", n)
	}
	if left := w.copiedRecords(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	return source, m.Counts().BytesRead - records
}

// A run that was killed when nearly all was copied does not read it again: neither
// from the cluster nor from the location, beyond what was not on record.
func TestAResumedRunReadsNothingTwice(t *testing.T) {
	for _, digests := range []bool{true, false} {
		t.Run(fmt.Sprintf("digests %v", digests), func(t *testing.T) {
			w := killedLate(t, false)
			source, location := w.goOn(t, digests, false)
			if source != 4 {
				t.Errorf("%d files were read from the cluster, of which 4 were missing", source)
			}
			size := fileSize(t, w.path(orders, w.tables[orders].files[39]))
			// The records of the run itself, and the one file that was not on record.
			if location > size+8<<10 {
				t.Errorf("%d bytes were read from the location; a file has %d", location, size)
			}
		})
	}
}

// What was copied without a look at checksums is looked at by a run that was asked to.
func TestUncheckedCopiesAreNotTakenOnTrust(t *testing.T) {
	w := killedLate(t, true)
	size := fileSize(t, w.path(orders, w.tables[orders].files[39]))
	if _, location := w.goOn(t, false, false); location < 33*size {
		t.Errorf("%d bytes were read from the location, 36 files have %d each", location, size)
	}
}

// A record that is damaged, or for another request, is no ground for anything, and
// neither is one of a file that is not there, or not of that size.
func TestAJournalIsNoTruth(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, w *world, k storage.Key){
		"a digest is another": func(t *testing.T, w *world, k storage.Key) {
			w.tamper(t, k, func(b []byte) []byte {
				i := bytes.Index(b, []byte(`"files"`))
				at := i + bytes.Index(b[i:], []byte("crc64nvme:")) + len("crc64nvme:")
				b = bytes.Clone(b)
				b[at] = "01"[(b[at]+1)%2]
				return b
			})
		},
		"cut short": func(t *testing.T, w *world, k storage.Key) {
			w.tamper(t, k, func(b []byte) []byte { return b[:len(b)/2] })
		},
		"of another request": func(t *testing.T, w *world, k storage.Key) {
			job := w.jobs(t)[0]
			c, err := catalog.ReadCopied(t.Context(), w.folder(), k, job)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Files {
				c.Files[i].Digest++
			}
			job.Tables = append(job.Tables, items)
			if err := w.folder().Delete(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			if err := catalog.WriteCopied(t.Context(), w.folder(), k, job, c); err != nil {
				t.Fatal(err)
			}
		},
		"its files are gone": func(t *testing.T, w *world, k storage.Key) {
			c, err := catalog.ReadCopied(t.Context(), w.folder(), k, w.jobs(t)[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range c.Files {
				if err := w.folder().Delete(t.Context(), f.Key); err != nil {
					t.Fatal(err)
				}
			}
		},
		"its files are shorter": func(t *testing.T, w *world, k storage.Key) {
			c, err := catalog.ReadCopied(t.Context(), w.folder(), k, w.jobs(t)[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range c.Files {
				w.tamper(t, f.Key, func(b []byte) []byte { return b[:len(b)-1] })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := killedLate(t, false)
			harm(t, w, w.copiedRecords(t)[3])
			w.goOn(t, false, false) // which verifies the image
		})
	}
}

// tamper changes an object of the cluster's folder.
func (w *world) tamper(t *testing.T, k storage.Key, change func([]byte) []byte) {
	t.Helper()
	w.store.(*mem.Store).Tamper("prod/"+k, change)
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}
