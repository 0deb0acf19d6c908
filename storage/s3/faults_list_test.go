package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

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

var (
	keyCount = regexp.MustCompile("<KeyCount>[0-9]+</KeyCount>")
	contents = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)
)

// TestListingThatLies has stores whose listings are wrong in ways that show: an
// error, never a listing that looks whole.
func TestListingThatLies(t *testing.T) {
	s, direct, p := behind(t, nil)
	for i := range 6 {
		if err := putBytes(t, direct, storage.Key(fmt.Sprintf("k%d", i)), nil, false); err != nil {
			t.Fatal(err)
		}
	}
	// truncated turns the whole listing into one page of several.
	truncated := func(b []byte) []byte {
		b = bytes.Replace(b, []byte("<IsTruncated>false"), []byte("<NextContinuationToken>t</NextContinuationToken><IsTruncated>true"), 1)
		return b
	}
	for name, change := range map[string]func([]byte) []byte{
		"repeats a key": func(b []byte) []byte {
			first := contents.Find(b)
			return bytes.Replace(b, first, append(slices.Clone(first), first...), 1)
		},
		"goes backwards": func(b []byte) []byte {
			b = bytes.Replace(b, []byte("k1"), []byte("k4"), 1)
			return b
		},
		"repeats a page for ever": truncated,
		"says there is more, but not where": func(b []byte) []byte {
			return bytes.Replace(b, []byte("<IsTruncated>false"), []byte("<IsTruncated>true"), 1)
		},
		"empty pages for ever": func(b []byte) []byte { return truncated(contents.ReplaceAll(b, nil)) },
		"another prefix": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("/k5<"), []byte("0/k5<"))
		},
		"no size": func(b []byte) []byte {
			return regexp.MustCompile("<Size>[0-9]+</Size>").ReplaceAll(b, nil)
		},
		"leaves out a key that it counts": nil,
		"cut off":                         func(b []byte) []byte { return b[:len(b)/2] },
		"not XML":                         func(b []byte) []byte { return []byte("<html><body>It works!</body></html>") },
		"nothing":                         func(b []byte) []byte { return nil },
		"an error":                        func(b []byte) []byte { return []byte(errorBody("AccessDenied")) },
	} {
		t.Run(name, func(t *testing.T) {
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == "ListObjectsV2" && p.Rewrite(w, r, func(b []byte) []byte {
					if change == nil {
						return bytes.Replace(b, contents.Find(b), nil, 1)
					}
					return change(keyCount.ReplaceAll(b, nil)) // not every store counts
				})
			})
			keys, err := listKeys(t, s)
			if err == nil {
				t.Fatalf("the listing ended well with %v", keys)
			}
			t.Log(err)
		})
	}
}

// TestListNamesOfOthers lists what other tools may have put there.
func TestListNamesOfOthers(t *testing.T) {
	s, direct, p := behind(t, nil)
	if err := putBytes(t, direct, "k0", nil, false); err != nil {
		t.Fatal(err)
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return op == "ListObjectsV2" && p.Rewrite(w, r, func(b []byte) []byte {
			b = bytes.Replace(b, []byte("<EncodingType>"), []byte("<EncodingType>url"), 1)
			return bytes.ReplaceAll(b, []byte("k0<"), []byte("a%01b+c%2Bd%2F%2Fe<"))
		})
	})
	keys, err := listKeys(t, s)
	if err != nil || len(keys) != 1 || keys[0] != "a\x01b c+d//e" {
		t.Fatalf("got %q, %v", keys, err)
	}
}

// TestDeleteAnswers has stores that refuse single keys of a batch, all of them,
// or batches as such.
func TestDeleteAnswers(t *testing.T) {
	s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
	keys := []storage.Key{"d/a", "d/b", "d/c"}
	fill := func() {
		for _, key := range keys {
			if err := putBytes(t, direct, key, nil, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuseB := func(w http.ResponseWriter, code string) bool {
		io.WriteString(w, `<?xml version="1.0"?><DeleteResult><Error><Key>`+s.full("d/b")+`</Key><Code>`+code+`</Code><Message>no</Message></Error>`+
			`<Deleted><Key>`+s.full("d/a")+`</Key></Deleted><Deleted><Key>`+s.full("d/c")+`</Key></Deleted></DeleteResult>`)
		return true
	}
	left := func() string {
		got, err := listKeys(t, direct)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, k := range got {
			b.WriteString(strings.TrimPrefix(string(k), "d/"))
		}
		return b.String()
	}
	for _, tc := range []struct {
		name     string
		f        proxy.Fault
		failures int
		kind     hbackup.Kind
		whole    bool
		left     string
	}{
		{"one refused once", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && nth == 1 && refuseB(w, "InternalError")
		}, 0, "", false, "ac"}, // the proxy deletes nothing the first time, and d/b is asked for again
		{"one refused for good", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && refuseB(w, "AccessDenied")
		}, 1, hbackup.KindDenied, false, "abc"},
		{"one refused for ever", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && refuseB(w, "SlowDown")
		}, 1, hbackup.KindThrottled, false, "abc"},
		{"one missing", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && refuseB(w, "NoSuchKey")
		}, 0, "", false, "abc"},
		{"all denied", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && refuse(w, r, 403, "AccessDenied")
		}, 0, hbackup.KindDenied, true, "abc"},
		{"answer lost", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && nth == 1 && p.LoseAnswer(t, w, r)
		}, 0, "", false, ""},
		{"an answer that is none", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && p.Rewrite(w, r, func([]byte) []byte { return []byte("<html>It works!</html>") })
		}, 0, "", false, ""},
		{"an answer that is none and does nothing", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			if op == "DeleteObjects" {
				w.Write([]byte("<html>It works!</html>"))
			}
			return op == "DeleteObjects"
		}, 0, "", false, ""},
		{"no batches", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "DeleteObjects" && refuse(w, r, 501, "NotImplemented")
		}, 0, "", false, ""},
		{"storm", func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return nth == 1 && refuse(w, r, 503, "SlowDown")
		}, 0, "", false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fill()
			p.Set(tc.f)
			failures, err := s.DeleteBatch(t.Context(), keys)
			p.Set(nil)
			if tc.whole {
				checkKind(t, err, tc.kind, true)
			} else if err != nil {
				t.Fatalf("DeleteBatch: %v", err)
			}
			if len(failures) != tc.failures {
				t.Fatalf("failures: %v; want %d", failures, tc.failures)
			}
			for _, f := range failures {
				if f.Key != "d/b" {
					t.Errorf("it was %s that failed", f.Key)
				}
				checkKind(t, f.Err, tc.kind, false)
			}
			if got := left(); got != tc.left {
				t.Errorf("%q is left; want %q", got, tc.left)
			}
		})
	}
}

// TestListingGoesOn breaks the answer of a page at each tenth of its bytes.
func TestListingGoesOn(t *testing.T) {
	s, direct, p := behind(t, nil)
	for i := range 8 {
		if err := putBytes(t, direct, storage.Key(fmt.Sprintf("k%d", i)), nil, false); err != nil {
			t.Fatal(err)
		}
	}
	var length int64
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return p.Rewrite(w, r, func(b []byte) []byte { length = int64(len(b)); return b })
	})
	if _, err := listKeys(t, s); err != nil {
		t.Fatal(err)
	}
	for tenth := range int64(10) {
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			if nth > 1 {
				return false
			}
			return p.CutAnswer(w, r, length*tenth/10)
		})
		keys, err := listKeys(t, s)
		if err != nil || fmt.Sprint(keys) != "[k0 k1 k2 k3 k4 k5 k6 k7]" {
			t.Errorf("%d tenths: %s, %v", tenth, keys, err)
		}
	}
}
