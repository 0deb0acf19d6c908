package gcs

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// shape is a way in which an object is written.
type shape struct {
	name     string
	size     int
	ifAbsent bool
	commit   string // the request that makes the object visible
	carrier  string // the one that carries its bytes
	begin    string // the one before, if there is one
}

var shapes = []shape{
	{"whole", 100_000, false, opInsert, opInsert, ""},
	{"whole if absent", 100_000, true, opInsert, opInsert, ""},
	{"empty if absent", 0, true, opInsert, opInsert, ""},
	{"a full chunk if absent", chunkQuantum, true, opInsert, opInsert, ""},
	{"chunks", 3*chunkQuantum + 77, false, opLast, opChunk, opBegin},
	{"chunks if absent", 3*chunkQuantum + 77, true, opLast, opChunk, opBegin},
	{"full chunks if absent", 2 * chunkQuantum, true, opLast, opChunk, opBegin},
	{"parts", minPart + 77, false, opMove, opPart, opInitiate},
	{"parts if absent", minPart + 77, true, opMove, opPart, opInitiate},
}

// shortShapes leaves the largest out in short mode.
func shortShapes() []shape {
	if testing.Short() {
		return shapes[:len(shapes)-2]
	}
	return shapes
}

// inShape has large objects sent in parts. They are larger than what the other
// shapes put.
func inShape(c *Config) {
	c.parallelFrom = minPart
	c.ChunkSize = minPart
}

// behindAs gives stores, as behind does, that put objects in one of the shapes.
func behindAs(t testing.TB, carrier string, change func(*Config)) (*Store, *Store, *proxy.Proxy) {
	return behind(t, func(c *Config) {
		if carrier == opPart {
			inShape(c)
		}
		if change != nil {
			change(c)
		}
	})
}

func bytesFor(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func putBytes(t testing.TB, s *Store, key storage.Key, data []byte, ifAbsent bool) error {
	t.Helper()
	obj, err := s.Put(t.Context(), key, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data)), IfAbsent: ifAbsent})
	if err == nil && (obj.Digest != storage.DigestOf(data) || !obj.HasDigest || obj.Size != int64(len(data))) {
		t.Fatalf("Put gave %+v", obj)
	}
	return err
}

func checkHas(t testing.TB, s *Store, key storage.Key, data []byte) {
	t.Helper()
	got, _, err := storage.ReadAll(t.Context(), s, key, 1<<30)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s holds %d bytes, %v; want %d", key, len(got), err, len(data))
	}
}

func checkAbsent(t testing.TB, s *Store, key storage.Key) {
	t.Helper()
	if _, err := s.Stat(t.Context(), key); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Fatalf("Stat of %s: %v; want not found", key, err)
	}
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil || obj.Key == key {
			t.Fatalf("List shows %s, %v", obj.Key, err)
		}
	}
}

// checkNothingStaged fails when a parallel upload has left anything.
func checkNothingStaged(t testing.TB, s *Store) {
	t.Helper()
	dir := s.full(tempDir + "/")
	if open, err := s.uploads(t.Context(), dir); err != nil || len(open) > 0 {
		t.Errorf("uploads are left open: %v, %v", open, err)
	}
	if o, err := s.client.Bucket(bucket).Objects(t.Context(), &gcs.Query{Prefix: dir}).Next(); err != iterator.Done {
		t.Errorf("left behind: %+v, %v", o, err)
	}
}

func checkKind(t testing.TB, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("got kind %q, want %q: %v", hbackup.KindOf(err), kind, err)
	}
}

// TestPassingFaults has faults that are over after a while: every put succeeds,
// and exactly its own bytes are there.
func TestPassingFaults(t *testing.T) {
	t.Parallel()
	type kind struct {
		name string
		make func(p *proxy.Proxy, commit, carrier string) proxy.Fault
	}
	refusals := func(status int, reason string) func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
		return func(*proxy.Proxy, string, string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return nth <= 3 && refuse(w, r, status, reason)
			}
		}
	}
	lostThen := func(status int, reason string) func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
		return func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case op != commit:
					return false
				case nth == 1:
					return p.LoseAnswer(t, w, r)
				}
				return refuse(w, r, status, reason)
			}
		}
	}
	kinds := []kind{
		{"storm of 503", refusals(503, "backendError")},
		{"storm of 429", refusals(429, "rateLimitExceeded")},
		{"rate limit as 403", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				// Of a chunk the library looks at the status alone.
				return op == opInsert && nth <= 3 && refuse(w, r, 403, "userRateLimitExceeded")
			}
		}},
		{"bytes damaged", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return (op == opInsert || op == opPart) && nth <= 2 && p.Damage(w, r)
			}
		}},
		{"internal errors", refusals(500, "internalError")},
		{"timeouts", refusals(408, "requestTimeout")},
		{"one answer lost", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == commit && nth == 1 && p.LoseAnswer(t, w, r)
			}
		}},
		{"answers of chunks lost", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == carrier && nth <= 2 && p.LoseAnswer(t, w, r)
			}
		}},
		{"answer lost, repetition is 404", lostThen(404, "notFound")},
		{"answer lost, repetition is 410", lostThen(410, "gone")},
		{"answer lost, repetition is 412", lostThen(412, "conditionNotMet")},
		{"answer lost, repetition is denied", lostThen(403, "forbidden")},
	}
	for tenth := range 11 {
		kinds = append(kinds, kind{fmt.Sprintf("reset after %d tenths", tenth), func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				n := max(r.ContentLength, chunkQuantum) // of a body without a length
				return op == carrier && nth == 1 && proxy.CutRequest(t, w, r, n*int64(tenth)/10)
			}
		}})
	}
	for _, shape := range shortShapes() {
		for _, k := range kinds {
			t.Run(shape.name+"/"+k.name, func(t *testing.T) {
				s, direct, p := behindAs(t, shape.carrier, nil)
				data := bytesFor(shape.size)
				p.Set(k.make(p, shape.commit, shape.carrier))
				if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
					t.Fatalf("Put: %v", err)
				}
				checkHas(t, direct, "a/key", data)
				checkNothingStaged(t, direct)
			})
		}
	}
}

// TestAllAnswersLost has a store that does what it is told and never says so.
func TestAllAnswersLost(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			s, direct, p := behindAs(t, shape.carrier, func(c *Config) { c.RetryFor = 20 * time.Millisecond })
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == shape.commit && p.LoseAnswer(t, w, r)
			})
			data := bytesFor(shape.size)
			if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
				t.Fatalf("Put: %v", err)
			}
			checkHas(t, direct, "a/key", data)
		})
	}
}

// TestLastingFaults has faults that do not pass: the put fails with the right
// kind, and nothing is visible.
func TestLastingFaults(t *testing.T) {
	t.Parallel()
	refusal := func(status int, reason string) func(*proxy.Proxy, http.ResponseWriter, *http.Request) bool {
		return func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, status, reason) }
	}
	for _, fc := range []struct {
		name string
		kind hbackup.Kind
		do   func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool
	}{
		{"unavailable", hbackup.KindUnavailable, refusal(503, "backendError")},
		{"too many requests", hbackup.KindThrottled, refusal(429, "rateLimitExceeded")},
		{"denied", hbackup.KindDenied, refusal(403, "forbidden")},
		{"token refused", hbackup.KindDenied, refusal(401, "authError")},
		{"quota", hbackup.KindNoSpace, refusal(403, "quotaExceeded")},
		{"reset half way", hbackup.KindUnavailable, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return proxy.CutRequest(t, w, r, max(r.ContentLength, 0)/2)
		}},
		{"bytes damaged", hbackup.KindCorrupt, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return r.ContentLength != 0 && p.Damage(w, r)
		}},
	} {
		for _, shape := range shortShapes() {
			targets := []string{shape.commit, shape.carrier, shape.begin}
			if shape.carrier == opPart {
				targets = append(targets, opComplete)
			}
			for _, target := range slices.Compact(targets) {
				switch {
				case target == "":
					continue // there is no such request
				case target == opInitiate && fc.name == "denied":
					continue // then it goes another way
				case fc.kind == hbackup.KindCorrupt && (target != shape.carrier || shape.size == 0):
					continue
				}
				t.Run(fmt.Sprintf("%s/%s of %s", fc.name, target, shape.name), func(t *testing.T) {
					s, direct, p := behindAs(t, shape.carrier, func(c *Config) { c.RetryFor = 8 * time.Millisecond })
					p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
						return op == target && fc.do(p, w, r)
					})
					err := putBytes(t, s, "a/key", bytesFor(shape.size), shape.ifAbsent)
					checkKind(t, err, fc.kind)
					checkAbsent(t, direct, "a/key")
					checkNothingStaged(t, direct)

					// The store can be used again, and another put is not disturbed.
					p.Set(nil)
					data := bytesFor(shape.size + 1)
					if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
						t.Fatalf("Put after the fault: %v", err)
					}
					checkHas(t, direct, "a/key", data)
				})
			}
		}
	}
}

// TestLostAnswerToLoser has a conditional put that loses, and whose answer is
// lost as well: it must never be taken for a success.
func TestLostAnswerToLoser(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		if !shape.ifAbsent {
			continue
		}
		t.Run(shape.name, func(t *testing.T) {
			s, direct, p := behindAs(t, shape.carrier, func(c *Config) { c.RetryFor = 100 * time.Millisecond })
			rival := bytesFor(shape.size) // the same bytes: only the stamp differs
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op != shape.commit {
					return false
				}
				if nth == 1 {
					if err := putBytes(t, direct, "a/key", rival, true); err != nil {
						t.Errorf("the rival's put: %v", err)
					}
				}
				return p.LoseAnswer(t, w, r)
			})
			err := putBytes(t, s, "a/key", bytesFor(shape.size), true)
			checkKind(t, err, hbackup.KindExists)
			checkHas(t, direct, "a/key", rival)
			checkNothingStaged(t, direct)
		})
	}
}

// TestRivalLeaves has a rival's object that is gone by the time of the look: the
// put tries again.
func TestRivalLeaves(t *testing.T) {
	t.Parallel()
	s, direct, p := behind(t, nil)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return op == opInsert && nth == 1 && refuse(w, r, 412, "conditionNotMet")
	})
	data := bytesFor(1000)
	if err := putBytes(t, s, "a/key", data, true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, direct, "a/key", data)
}

// TestWrongAnswer has a store that says that it has stored something else than
// what was sent.
func TestWrongAnswer(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		for name, change := range map[string][2]string{
			"checksum": {`"crc32c":"`, `"crc32c":"AAAAAA==","x":"`},
			"size":     {`"size":"`, `"size":"9`},
		} {
			t.Run(shape.name+"/"+name, func(t *testing.T) {
				if shape.size == 0 && name == "checksum" {
					t.Skip("this is the checksum of nothing")
				}
				s, _, p := behindAs(t, shape.carrier, nil)
				p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
					return op == shape.commit && p.Rewrite(w, r, func(b []byte) []byte {
						return bytes.Replace(b, []byte(change[0]), []byte(change[1]), 1)
					})
				})
				checkKind(t, putBytes(t, s, "a/key", bytesFor(shape.size), shape.ifAbsent), hbackup.KindCorrupt)
			})
		}
	}
}
