package gcs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/storetest/proxy"
)

// TestSideBySide has a store that answers to no part before it has seen two, and
// counts the requests.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s, direct, p := behindAs(t, opPart, nil)
	second := make(chan struct{})
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op == opPart && nth == 1 {
			select {
			case <-second:
			case <-r.Context().Done():
			}
		}
		if op == opPart && nth == 2 {
			close(second)
		}
		return false
	})
	data := bytesFor(2*minPart + 1)
	if err := putBytes(t, s, "a/key", data, true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, direct, "a/key", data)
	for op, want := range map[string]int{opInitiate: 1, opPart: 3, opComplete: 1, opPatch: 1, opMove: 1, opBegin: 0, opInsert: 0} {
		if n := p.Requests(op); n != want {
			t.Errorf("%d requests of the kind %s; want %d", n, op, want)
		}
	}
}

// TestDigestIsKept puts objects whose digest is not known when the upload begins:
// Stat gives it all the same, unless the account may not change metadata.
func TestDigestIsKept(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			s, direct, p := behindAs(t, shape.carrier, nil)
			data := bytesFor(shape.size)
			if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
				t.Fatal(err)
			}
			obj, err := direct.Stat(t.Context(), "a/key")
			if err != nil || !obj.HasDigest || obj.Digest != storage.DigestOf(data) {
				t.Errorf("Stat gives %+v, %v", obj, err)
			}
			digest := storage.DigestOf(data)
			if _, err := s.Put(t.Context(), "known", bytes.NewReader(data), storage.PutOptions{Size: int64(len(data)), Digest: &digest}); err != nil {
				t.Fatal(err)
			}
			if obj, err := direct.Stat(t.Context(), "known"); err != nil || !obj.HasDigest || obj.Digest != digest {
				t.Errorf("Stat gives %+v, %v", obj, err)
			}
			if n := p.Requests(opPatch); n > 1 {
				t.Errorf("%d changes of metadata, although the digest of the second was known", n)
			}
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opPatch && refuse(w, r, 403, "forbidden")
			})
			for _, key := range []storage.Key{"denied/1", "denied/2"} {
				if err := putBytes(t, s, key, data, shape.ifAbsent); err != nil {
					t.Fatal(err)
				}
				checkHas(t, direct, key, data)
			}
			if n := p.Requests(opPatch); n > 1 {
				t.Errorf("%d requests for a right that is missing", n)
			}
		})
	}
}

// TestAnotherWay has services that do not offer multipart uploads, or not to this
// account: the object is sent in chunks, and the next one is not tried again.
func TestAnotherWay(t *testing.T) {
	t.Parallel()
	answers := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"no XML": func(w http.ResponseWriter, r *http.Request) bool { io.WriteString(w, "hello"); return true },
		"HTML":   func(w http.ResponseWriter, r *http.Request) bool { io.WriteString(w, "<html></html>"); return true },
	}
	for _, status := range []int{400, 403, 404, 405, 501} {
		answers[fmt.Sprint(status)] = func(w http.ResponseWriter, r *http.Request) bool { return refuseXML(w, r, status, "Whatever") }
	}
	for name, do := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, direct, p := behindAs(t, opPart, func(c *Config) { c.RetryFor = 10 * time.Millisecond })
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opInitiate && do(w, r)
			})
			data := bytesFor(minPart + 1)
			tried := 0
			for i, key := range []storage.Key{"a", "b"} {
				if err := putBytes(t, s, key, data, true); err != nil {
					t.Fatal(err)
				}
				checkHas(t, direct, key, data)
				if i == 0 {
					tried = p.Requests(opInitiate)
				}
			}
			asked := p.Requests(opInitiate)
			_, err := s.OpenUpload(t.Context(), "held", "stamp")
			if checkKind(t, err, hbackup.KindUnsupported); hbackup.HintOf(err) == "" {
				t.Errorf("a held upload: %v", err)
			}
			if a, b := asked, p.Requests(opBegin); b != 2 || a == 0 || a != tried {
				t.Errorf("%d multipart and %d resumable uploads were begun, %d of the former for the second object", a, b, a-tried)
			}
		})
	}
}

// ownServer gives a store on a server of its own, with a clock of its own.
func ownServer(t *testing.T, o gcstest.Options) (*Store, *time.Time) {
	t.Helper()
	now := time.Now()
	var mu sync.Mutex
	o.Buckets, o.Now = []string{bucket}, func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	srv, err := gcstest.Start("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	c := configFor(t)
	c.Endpoint = srv.Endpoint()
	inShape(&c)
	return open(t, c), &now
}

// TestRetention has a bucket that lets nobody delete or move anything: no
// temporary object is made in it.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, mayAsk := range []bool{true, false} {
		kept, _ := ownServer(t, gcstest.Options{Retention: time.Hour})
		p := proxy.New(t, kept.c.Endpoint, operation)
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return !mayAsk && op == opStat && strings.HasSuffix(r.URL.Path, "/b/"+bucket) && refuse(w, r, 403, "forbidden")
		})
		c := kept.c
		c.Endpoint = p.URL
		s := open(t, c)
		if err := putBytes(t, s, "hbackup.json", []byte("{}"), true); err != nil {
			t.Fatal(err)
		}
		checkKind(t, s.Delete(t.Context(), "hbackup.json"), hbackup.KindDenied)
		data := bytesFor(minPart + 1)
		if err := putBytes(t, s, "a/key", data, true); err != nil {
			t.Fatal(err)
		}
		checkHas(t, s, "a/key", data)
		checkNothingStaged(t, s)
		if n := p.Requests(opInitiate); n > 0 || !s.serial.Load() {
			t.Errorf("the store does not know of the policy (may ask for it: %v)", mayAsk)
		}
	}
}

// TestSweep has what a dead process has left. It goes when it is old, and nothing
// of a neighbour does.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, now := ownServer(t, gcstest.Options{})
	names := []string{tempDir + "/dead", tempDir + "0/x", "a/" + tempDir + "/x", tempDir}
	for _, name := range names {
		begin(t, s, name)
		if err := s.object(storage.Key(name)).NewWriter(t.Context()).Close(); err != nil {
			t.Fatal(err)
		}
	}
	*now = now.Add(abandonedAfter - time.Minute)
	young := begin(t, s, tempDir+"/young")
	*now = now.Add(2 * time.Minute)
	data := bytesFor(minPart + 1)
	if err := putBytes(t, s, "a/key", data, true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, s, "a/key", data)
	left, err := s.uploads(t.Context(), s.full(""))
	var got []string
	for _, u := range left {
		got = append(got, strings.TrimPrefix(u.Name, s.full("")))
	}
	if want := "[.hbackup-tmp .hbackup-tmp/young .hbackup-tmp0/x a/.hbackup-tmp/x]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("open uploads: %v, %v; want %s", got, err, want)
	}
	for i, name := range names {
		if _, err := s.object(storage.Key(name)).Attrs(t.Context()); isMissing(err) != (i == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := young.abort(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestReservedNames has keys where the temporary objects are.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	s := open(t, configFor(t))
	for _, name := range []storage.Key{tempDir + "/x", tempDir} {
		if err := s.object(name).NewWriter(t.Context()).Close(); err != nil {
			t.Fatal(err)
		}
		checkKind(t, putBytes(t, s, name, nil, false), hbackup.KindUsage)
		_, err := s.Stat(t.Context(), name)
		checkKind(t, err, hbackup.KindUsage)
		_, _, err = s.Get(t.Context(), name, storage.Range{})
		checkKind(t, err, hbackup.KindUsage)
		checkKind(t, s.Delete(t.Context(), name), hbackup.KindUsage)
		failures, err := s.DeleteBatch(t.Context(), []storage.Key{name})
		if err != nil || len(failures) != 1 {
			t.Errorf("DeleteBatch: %v, %v", failures, err)
		}
	}
	if err := putBytes(t, s, tempDir+"0/x", nil, true); err != nil {
		t.Fatal(err)
	}
	if keys, err := listKeys(t, s); err != nil || len(keys) != 1 || keys[0] != tempDir+"0/x" {
		t.Errorf("listed are %v, %v", keys, err)
	}
}

// TestStagedWrongly has a service that put the parts together in another way than
// they were sent: the object never gets its name.
func TestStagedWrongly(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"checksum": {`"crc32c":"`, `"crc32c":"AAAAAA==","x":"`},
		"size":     {`"size":"`, `"size":"9`},
	} {
		s, direct, p := behindAs(t, opPart, nil)
		earlier := []byte("earlier")
		if err := putBytes(t, direct, "a/key", earlier, true); err != nil {
			t.Fatal(err)
		}
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == opStat && strings.Contains(r.URL.Path, tempDir) && p.Rewrite(w, r, func(b []byte) []byte {
				return bytes.Replace(b, []byte(change[0]), []byte(change[1]), 1)
			})
		})
		err := putBytes(t, s, "a/key", bytesFor(minPart+1), false)
		if !hbackup.IsKind(err, hbackup.KindCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		checkHas(t, direct, "a/key", earlier)
		checkNothingStaged(t, direct)
	}
}

// TestDelayedAndDuplicated has requests that the network delivers twice, once at
// once and once when all is over: nothing of the object changes any more.
func TestDelayedAndDuplicated(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		for _, target := range []string{shape.begin, shape.carrier, opComplete, shape.commit} {
			if target == "" || target == opComplete && shape.carrier != opPart {
				continue
			}
			t.Run(shape.name+"/"+target, func(t *testing.T) {
				s, direct, p := behindAs(t, shape.carrier, nil)
				type late struct {
					r    *http.Request
					body []byte
				}
				var mu sync.Mutex
				var all []late
				send := func(l late) {
					resp, err := p.Forward(l.r.WithContext(context.WithoutCancel(t.Context())), bytes.NewReader(l.body))
					if err != nil {
						t.Errorf("forward: %v", err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
					if op != target {
						return false
					}
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Errorf("read: %v", err)
					}
					l := late{r.Clone(t.Context()), body}
					mu.Lock()
					all = append(all, l)
					mu.Unlock()
					send(l) // the first copy, whose answer nobody sees
					r.Body = io.NopCloser(bytes.NewReader(body))
					return false
				})
				data := bytesFor(shape.size)
				if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
					t.Fatal(err)
				}
				p.Set(nil)
				before, err := direct.object("a/key").Attrs(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, l := range all {
					send(l)
				}
				checkHas(t, direct, "a/key", data)
				after, err := direct.object("a/key").Attrs(t.Context())
				if err != nil || shape.ifAbsent && after.Generation != before.Generation {
					t.Errorf("generation %d became %d, %v", before.Generation, after.Generation, err)
				}
				if target == opInitiate { // whose second upload is swept in time
					open, err := direct.uploads(t.Context(), direct.full(tempDir+"/"))
					if err != nil || len(open) == 0 {
						t.Errorf("open are %v, %v", open, err)
					}
					for _, u := range open {
						upload{s: direct, name: u.Name, id: u.ID}.abort(t.Context())
					}
				}
				checkNothingStaged(t, direct)
			})
		}
	}
}
