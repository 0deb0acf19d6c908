package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// shapes are the ways in which an object is written.
var shapes = []struct {
	name     string
	size     int
	ifAbsent bool
	commit   string // the request that makes the object visible
	carrier  string // the one that carries its bytes
}{
	{"whole", 100_000, false, "PutObject", "PutObject"},
	{"whole if absent", 100_000, true, "PutObject", "PutObject"},
	{"empty if absent", 0, true, "PutObject", "PutObject"},
	{"whole of 5 MiB", minPartSize, true, "PutObject", "PutObject"},
	{"parts", 2*minPartSize + 77, false, "CompleteMultipartUpload", "UploadPart"},
	{"parts if absent", 2*minPartSize + 77, true, "CompleteMultipartUpload", "UploadPart"},
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

func checkNoUploads(t testing.TB, s *Store) {
	t.Helper()
	if left := openUploads(t, s); len(left) > 0 {
		t.Fatalf("uploads were left open: %v", left)
	}
}

// checkKind checks an error's kind and that it has a hint.
func checkKind(t testing.TB, err error, kind hbackup.Kind, hint bool) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("got kind %q, want %q: %v", hbackup.KindOf(err), kind, err)
	}
	if hint && hbackup.HintOf(err) == "" {
		t.Fatalf("the error has no hint: %v", err)
	}
}

// TestPassingFaults has faults that are over after a while: every put succeeds,
// and exactly its own bytes are there.
func TestPassingFaults(t *testing.T) {
	long(t)
	type kind struct {
		name string
		make func(p *proxy.Proxy, commit, carrier string) proxy.Fault
	}
	kinds := []kind{
		{"storm of 503", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return nth <= 3 && refuse(w, r, 503, "SlowDown")
			}
		}},
		{"internal errors", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return nth <= 3 && refuse(w, r, 500, "InternalError")
			}
		}},
		{"conflict of conditions", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == commit && nth <= 2 && refuse(w, r, 409, "ConditionalRequestConflict")
			}
		}},
		{"error in an answer of 200", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op != commit || nth > 2 {
					return false
				}
				return refuse(w, r, 200, "InternalError")
			}
		}},
		{"success, then an error in an answer of 200", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == commit && nth == 1 && p.Rewrite(w, r, func([]byte) []byte { return []byte(errorBody("InternalError")) })
			}
		}},
		{"one answer lost", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == commit && nth == 1 && p.LoseAnswer(t, w, r)
			}
		}},
		{"all answers lost", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == commit && p.LoseAnswer(t, w, r)
			}
		}},
		{"answer lost, repetition is 404", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case op != commit || commit == "PutObject":
					return false
				case nth == 1:
					return p.LoseAnswer(t, w, r)
				}
				return refuse(w, r, 404, "NoSuchUpload")
			}
		}},
		{"answer lost, repetition is 412", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case op != commit:
					return false
				case nth == 1:
					return p.LoseAnswer(t, w, r)
				}
				return refuse(w, r, 412, "PreconditionFailed")
			}
		}},
		{"answer lost, repetition is denied", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case op != commit:
					return false
				case nth == 1:
					return p.LoseAnswer(t, w, r)
				}
				return refuse(w, r, 403, "AccessDenied")
			}
		}},
		{"bytes damaged once", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == carrier && nth == 1 && r.ContentLength > 0 && p.Damage(w, r)
			}
		}},
		{"answers of parts lost", func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == carrier && nth <= 2 && p.LoseAnswer(t, w, r)
			}
		}},
	}
	for tenth := range 11 {
		kinds = append(kinds, kind{fmt.Sprintf("reset after %d tenths", tenth), func(p *proxy.Proxy, commit, carrier string) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == carrier && nth == 1 && proxy.CutRequest(t, w, r, r.ContentLength*int64(tenth)/10)
			}
		}})
	}
	for _, shape := range shapes {
		for _, k := range kinds {
			t.Run(shape.name+"/"+k.name, func(t *testing.T) {
				s, direct, p := behind(t, nil)
				data := bytesFor(shape.size)
				p.Set(k.make(p, shape.commit, shape.carrier))
				if err := putBytes(t, s, "a/key", data, shape.ifAbsent); err != nil {
					t.Fatalf("Put: %v", err)
				}
				checkHas(t, direct, "a/key", data)
				checkNoUploads(t, direct)
			})
		}
	}
}

// TestLastingFaults has faults that do not pass: the put fails with the right
// kind, nothing is visible and nothing is left open.
func TestLastingFaults(t *testing.T) {
	long(t)
	for _, fc := range []struct {
		name string
		kind hbackup.Kind
		do   func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool
	}{
		{"storm of 503", hbackup.KindThrottled, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return refuse(w, r, 503, "SlowDown")
		}},
		{"too many requests", hbackup.KindThrottled, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return refuse(w, r, 429, "TooManyRequests")
		}},
		{"gone", hbackup.KindUnavailable, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return refuse(w, r, 503, "ServiceUnavailable")
		}},
		{"denied", hbackup.KindDenied, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return refuse(w, r, 403, "AccessDenied")
		}},
		{"error in an answer of 200", hbackup.KindUnavailable, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return refuse(w, r, 200, "InternalError")
		}},
		{"reset half way", hbackup.KindUnavailable, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return proxy.CutRequest(t, w, r, r.ContentLength/2)
		}},
		{"bytes damaged", hbackup.KindCorrupt, func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request, carries bool) bool {
			return carries && r.ContentLength > 0 && p.Damage(w, r)
		}},
	} {
		for _, shape := range shapes {
			for _, target := range []string{shape.commit, shape.carrier} {
				if target == shape.carrier && shape.commit == shape.carrier && fc.name != "denied" && shape.size > 1<<20 {
					continue // the same as the other one, only slower
				}
				if fc.kind == hbackup.KindCorrupt && (target != shape.carrier || shape.size == 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s of %s", fc.name, target, shape.name), func(t *testing.T) {
					s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 3 })
					p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
						return op == target && fc.do(p, w, r, op == shape.carrier)
					})
					err := putBytes(t, s, "a/key", bytesFor(shape.size), shape.ifAbsent)
					checkKind(t, err, fc.kind, false)
					checkAbsent(t, direct, "a/key")
					checkNoUploads(t, direct)

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
	for _, shape := range shapes {
		if !shape.ifAbsent {
			continue
		}
		t.Run(shape.name, func(t *testing.T) {
			s, direct, p := behind(t, nil)
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
				// The store may refuse before it has read everything: then the body broke
				// off, which is another case.
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Errorf("the body: %v", err)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				return p.LoseAnswer(t, w, r)
			})
			err := putBytes(t, s, "a/key", bytesFor(shape.size), true)
			checkKind(t, err, hbackup.KindExists, false)
			checkHas(t, direct, "a/key", rival)
			checkNoUploads(t, direct)
		})
	}
}

// TestRivalLeaves has a rival's object that is gone by the time of the look: the
// put tries again.
func TestRivalLeaves(t *testing.T) {
	s, direct, p := behind(t, nil)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return op == "PutObject" && nth == 1 && refuse(w, r, 412, "PreconditionFailed")
	})
	data := bytesFor(1000)
	if err := putBytes(t, s, "a/key", data, true); err != nil {
		t.Fatal(err)
	}
	checkHas(t, direct, "a/key", data)
}

// TestUnknownOutcome has a store that falls silent at the commit: the put fails,
// and an upload of which it is not known whether it became an object is left.
func TestUnknownOutcome(t *testing.T) {
	s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
	var down atomic.Bool
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op == "CompleteMultipartUpload" {
			down.Store(true)
		}
		if down.Load() {
			proxy.Reset(t, w)
		}
		return down.Load()
	})
	err := putBytes(t, s, "a/key", bytesFor(2*minPartSize), false)
	checkKind(t, err, hbackup.KindUnavailable, false)
	if p.Requests("AbortMultipartUpload") > 0 {
		t.Error("the upload was aborted")
	}
	if left := openUploads(t, direct); len(left) != 1 {
		t.Errorf("open uploads: %v", left)
	}
	checkAbsent(t, direct, "a/key")
}

// TestCancelAfterLastByte cancels a put while the store is at work on it. The
// answer is waited for, and when it does not come the object itself is asked.
func TestCancelAfterLastByte(t *testing.T) {
	long(t)
	for _, shape := range shapes {
		for _, mode := range []string{"answer comes", "answer never comes", "store did nothing"} {
			t.Run(shape.name+"/"+mode, func(t *testing.T) {
				s, direct, p := behind(t, nil)
				s.c.settle = 200e6 // 0.2 s
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
					if op != shape.commit {
						return false
					}
					switch mode {
					case "answer comes":
						resp, err := p.Forward(r, r.Body)
						if err != nil {
							t.Errorf("forward: %v", err)
							return true
						}
						defer resp.Body.Close()
						cancel()
						proxy.Answer(w, resp)
						io.Copy(w, resp.Body)
					case "answer never comes":
						body, _ := io.ReadAll(r.Body)
						if resp, err := p.Forward(r.WithContext(context.WithoutCancel(r.Context())), bytes.NewReader(body)); err != nil {
							t.Errorf("forward: %v", err)
						} else {
							resp.Body.Close()
						}
						cancel()
						<-r.Context().Done()
					default:
						io.Copy(io.Discard, r.Body)
						cancel()
						<-r.Context().Done()
					}
					return true
				})
				data := bytesFor(shape.size)
				_, err := s.Put(ctx, "a/key", bytes.NewReader(data), storage.PutOptions{Size: int64(len(data)), IfAbsent: shape.ifAbsent})
				if mode == "store did nothing" {
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("Put: %v; want it cancelled", err)
					}
					checkKind(t, err, hbackup.KindInterrupted, false)
					checkAbsent(t, direct, "a/key")
				} else {
					if err != nil {
						t.Fatalf("Put has put the object, but says %v", err)
					}
					checkHas(t, direct, "a/key", data)
				}
				checkNoUploads(t, direct)
			})
		}
	}
}

// TestCancelBeforeLastByte cancels while bytes are on their way: it ends at once
// and leaves nothing. The bytes are more than the buffers of a connection hold.
func TestCancelBeforeLastByte(t *testing.T) {
	const large = 32 << 20
	for _, shape := range []struct {
		size    int
		carrier string
	}{{large, "PutObject"}, {2 * large, "UploadPart"}} {
		t.Run(shape.carrier, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.PartSize = large })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op != shape.carrier {
					return false
				}
				io.CopyN(io.Discard, r.Body, 1000)
				cancel()
				<-ctx.Done()
				if n, err := io.Copy(io.Discard, r.Body); err == nil {
					t.Errorf("all %d bytes came in spite of the cancel", n+1000)
				}
				return true
			})
			_, err := s.Put(ctx, "a/key", bytes.NewReader(make([]byte, shape.size)), storage.PutOptions{Size: int64(shape.size)})
			checkKind(t, err, hbackup.KindInterrupted, false)
			checkAbsent(t, direct, "a/key")
			checkNoUploads(t, direct)
		})
	}
}
