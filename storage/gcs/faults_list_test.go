package gcs

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

func listKeys(t testing.TB, s *Store) ([]storage.Key, error) {
	var keys []storage.Key
	var last error
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if last != nil {
			t.Fatal("the listing went on after its error")
		}
		if last = err; err == nil {
			keys = append(keys, obj.Key)
		}
	}
	return keys, last
}

// TestListingThatLies has stores whose listings are wrong in ways that show: an
// error, never a listing that looks whole.
func TestListingThatLies(t *testing.T) {
	t.Parallel()
	s, direct, p := behind(t, func(c *Config) { c.RetryFor = 10 * time.Millisecond })
	for i := range 6 {
		if err := putBytes(t, direct, storage.Key(fmt.Sprintf("k%d", i)), nil, false); err != nil {
			t.Fatal(err)
		}
	}
	more := func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"kind":"storage#objects"`), []byte(`"kind":"storage#objects","nextPageToken":""`), 1)
	}
	for name, change := range map[string]func([]byte) []byte{
		"repeats a key": func(b []byte) []byte {
			return bytes.Replace(b, []byte("/k2\""), []byte("/k1\""), -1)
		},
		"goes backwards": func(b []byte) []byte {
			return bytes.Replace(b, []byte("/k1\""), []byte("/k4\""), -1)
		},
		"another prefix": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("/k5\""), []byte("0/k5\""))
		},
		"repeats a page for ever": func(b []byte) []byte {
			return bytes.Replace(more(b), []byte(`"nextPageToken":""`), []byte(`"nextPageToken":"AAAA"`), 1)
		},
		"a size below zero": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"size":"0"`), []byte(`"size":"-1"`), 1)
		},
		"no names": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"name"`), []byte(`"nome"`)) },
		"cut off":  func(b []byte) []byte { return b[:len(b)/2] },
		"not JSON": func(b []byte) []byte { return []byte("<html><body>It works!</body></html>") },
		"nothing":  func(b []byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op == opList && strings.Contains(r.URL.RawQuery, "pageToken=A") {
					q := r.URL.Query()
					q.Del("pageToken")
					r.URL.RawQuery = q.Encode() // the first page again
				}
				return op == opList && p.Rewrite(w, r, change)
			})
			keys, err := listKeys(t, s)
			if err == nil {
				t.Fatalf("the listing ended well with %v", keys)
			}
		})
	}
}

// TestListGoesOn has faults in the middle of a listing of many pages, once those
// that pass and once one that lasts.
func TestListGoesOn(t *testing.T) {
	t.Parallel()
	patient, direct, p := behind(t, nil)
	c := patient.c
	c.RetryFor = 200 * time.Millisecond
	hasty := open(t, c)
	const keys = 12
	for i := range keys {
		if err := putBytes(t, direct, storage.Key(fmt.Sprintf("k%02d", i)), nil, false); err != nil {
			t.Fatal(err)
		}
	}
	small := func(r *http.Request) { // pages of five
		q := r.URL.Query()
		q.Set("maxResults", "5")
		r.URL.RawQuery = q.Encode()
	}
	for name, do := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"503":        func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 503, "backendError") },
		"429":        func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 429, "rateLimitExceeded") },
		"rate limit": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 403, "rateLimitExceeded") },
		"reset":      func(w http.ResponseWriter, r *http.Request) bool { proxy.Reset(t, w); return true },
		"cut off":    func(w http.ResponseWriter, r *http.Request) bool { return p.CutAnswer(w, r, 100) },
	} {
		for _, lasts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lasts %v", name, lasts), func(t *testing.T) {
				p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
					if op != opList {
						return false
					}
					small(r)
					return nth >= 2 && (lasts || nth <= 4) && do(w, r)
				})
				s := patient
				if lasts {
					s = hasty
				}
				got, err := listKeys(t, s)
				switch {
				case !lasts && (err != nil || len(got) != keys):
					t.Fatalf("got %d keys, %v; want %d", len(got), err, keys)
				case lasts && (!hbackup.IsKind(err, hbackup.KindUnavailable, hbackup.KindThrottled) || len(got) != 5):
					t.Fatalf("got %d keys and kind %q, %v", len(got), hbackup.KindOf(err), err)
				}
			})
		}
	}
}

// TestListNamesOfOthers lists what other tools may have put there.
func TestListNamesOfOthers(t *testing.T) {
	t.Parallel()
	s := open(t, configFor(t))
	odd := []string{"a b+c//e", "e\u0301", "plain", "x?y#z%41", "é", "ü:&=;"}
	for _, name := range odd {
		if err := s.object(storage.Key(name)).NewWriter(t.Context()).Close(); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := listKeys(t, s)
	if err != nil || fmt.Sprint(keys) != fmt.Sprint(odd) {
		t.Fatalf("got %q, %v", keys, err)
	}
}

// TestDeleteAnswers has a store that refuses one key of a batch, and one whose
// answers get lost.
func TestDeleteAnswers(t *testing.T) {
	t.Parallel()
	keys := []storage.Key{"d/a", "d/b", "d/c"}
	for _, tc := range []struct {
		name string
		f    func(p *proxy.Proxy) proxy.Fault
		kind hbackup.Kind // of the failure of d/b; "" for none
	}{
		{"answers lost", func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opDelete && nth <= 3 && p.LoseAnswer(t, w, r)
			}
		}, ""},
		{"one denied", func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opDelete && strings.HasSuffix(r.URL.Path, "/b") && refuse(w, r, 403, "forbidden")
			}
		}, hbackup.KindDenied},
		{"one held", func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opDelete && strings.HasSuffix(r.URL.Path, "/b") && refuse(w, r, 403, "retentionPolicyNotMet")
			}
		}, hbackup.KindDenied},
		{"one never answered", func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opDelete && strings.HasSuffix(r.URL.Path, "/b") && refuse(w, r, 503, "backendError")
			}
		}, hbackup.KindUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.RetryFor = 50 * time.Millisecond })
			for _, key := range keys {
				if err := putBytes(t, direct, key, nil, false); err != nil {
					t.Fatal(err)
				}
			}
			p.Set(tc.f(p))
			failures, err := s.DeleteBatch(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			left, err := listKeys(t, direct)
			switch {
			case err != nil:
				t.Fatal(err)
			case tc.kind == "":
				if len(failures) > 0 || len(left) > 0 {
					t.Fatalf("failures %v, left %v", failures, left)
				}
			case len(failures) != 1 || failures[0].Key != "d/b" || len(left) != 1 || left[0] != "d/b":
				t.Fatalf("failures %v, left %v", failures, left)
			default:
				checkKind(t, failures[0].Err, tc.kind)
				var he *hbackup.Error
				if !errors.As(failures[0].Err, &he) || !strings.HasSuffix(he.Path, "/d/b") {
					t.Errorf("the error does not name the object: %v", failures[0].Err)
				}
			}
		})
	}
}

// TestDeleteOfTheNext has the answer to a deletion lost, and another object under
// the key by the time of the next attempt: it stays.
func TestDeleteOfTheNext(t *testing.T) {
	t.Parallel()
	s, direct, p := behind(t, nil)
	if err := putBytes(t, direct, "lease", []byte("old"), true); err != nil {
		t.Fatal(err)
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op != opDelete || nth > 1 {
			return false
		}
		resp, err := p.Forward(r, r.Body)
		if err != nil {
			t.Errorf("forward: %v", err)
		} else {
			resp.Body.Close()
		}
		if err := putBytes(t, direct, "lease", []byte("new"), true); err != nil {
			t.Errorf("the next one's put: %v", err)
		}
		proxy.Reset(t, w)
		return true
	})
	if err := s.Delete(t.Context(), "lease"); err != nil {
		t.Fatal(err)
	}
	if n := p.Requests(opDelete); n != 2 {
		t.Errorf("%d attempts", n)
	}
	checkHas(t, direct, "lease", []byte("new"))
}
