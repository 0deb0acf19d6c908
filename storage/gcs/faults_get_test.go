package gcs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// readRange reads a range to its end, errors included.
func readRange(t testing.TB, s *Store, key storage.Key, r storage.Range) ([]byte, error) {
	t.Helper()
	body, _, err := s.Get(t.Context(), key, r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if cerr := body.Close(); cerr != nil {
		t.Fatalf("Close: %v", cerr)
	}
	return data, err
}

// TestReadGoesOn breaks the answer at each tenth of its bytes, once and again.
func TestReadGoesOn(t *testing.T) {
	t.Parallel()
	s, direct, p := behind(t, nil)
	data := bytesFor(3_000_000)
	if err := putBytes(t, direct, "a/key", data, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range []storage.Range{{}, {Offset: 1_000_001, Length: 777_777}, {Offset: 2_000_000}} {
		_, length, _ := r.Of(int64(len(data)))
		want := data[r.Offset : r.Offset+length]
		for tenth := range int64(10) {
			for _, times := range []int{1, 4} {
				t.Run(fmt.Sprintf("%+v/%d tenths/%d times", r, tenth, times), func(t *testing.T) {
					p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
						return op == opGet && nth <= times && p.CutAnswer(w, r, length*tenth/10/int64(times))
					})
					got, err := readRange(t, s, "a/key", r)
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(want))
					}
					if n := p.Requests(opGet); n != times+1 {
						t.Errorf("%d requests; want %d", n, times+1)
					}
				})
			}
		}
	}
}

// TestReadNeverShort has stores that deliver fewer or other bytes than there
// are, in every way that the protocol allows: no reader may end well.
func TestReadNeverShort(t *testing.T) {
	t.Parallel()
	data := bytesFor(400_000)
	half := int64(len(data) / 2)
	// firstHalf breaks the first answer off and has then decide about the others.
	firstHalf := func(then func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool) func(*proxy.Proxy, int, http.ResponseWriter, *http.Request) bool {
		return func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			if nth == 1 {
				return p.CutAnswer(w, r, half)
			}
			return then(p, w, r)
		}
	}
	refusal := func(status int, reason string) func(*proxy.Proxy, http.ResponseWriter, *http.Request) bool {
		return func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, status, reason) }
	}
	header := func(name, value string) func(*proxy.Proxy, int, http.ResponseWriter, *http.Request) bool {
		return func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			resp, err := p.Forward(r, r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer resp.Body.Close()
			resp.Header.Set(name, value)
			proxy.Answer(w, resp)
			io.Copy(w, resp.Body)
			return true
		}
	}
	for _, tc := range []struct {
		name  string
		kinds []hbackup.Kind
		r     storage.Range
		do    func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool
	}{
		{"breaks off for ever", []hbackup.Kind{hbackup.KindIncomplete}, storage.Range{}, firstHalf(func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return p.CutAnswer(w, r, 0)
		})},
		{"is gone for ever", []hbackup.Kind{hbackup.KindIncomplete}, storage.Range{Offset: 5}, firstHalf(refusal(503, "backendError"))},
		{"object replaced meanwhile", []hbackup.Kind{hbackup.KindIncomplete}, storage.Range{}, firstHalf(refusal(412, "conditionNotMet"))},
		{"object deleted meanwhile", []hbackup.Kind{hbackup.KindIncomplete}, storage.Range{}, firstHalf(refusal(404, "notFound"))},
		{"right lost meanwhile", []hbackup.Kind{hbackup.KindDenied}, storage.Range{}, firstHalf(refusal(403, "forbidden"))},
		{"goes on with the whole", []hbackup.Kind{hbackup.KindIncomplete, hbackup.KindCorrupt}, storage.Range{}, firstHalf(func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range")
			return false
		})},
		{"a damaged byte", []hbackup.Kind{hbackup.KindCorrupt}, storage.Range{}, func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			return p.Rewrite(w, r, func(b []byte) []byte { b[half] ^= 1; return b })
		}},
		{"another checksum", []hbackup.Kind{hbackup.KindCorrupt}, storage.Range{}, header("X-Goog-Hash", "crc32c=AAAAAA==")},
		{"a shorter object that claims to be whole", []hbackup.Kind{hbackup.KindCorrupt}, storage.Range{}, func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			return p.Rewrite(w, r, func(b []byte) []byte { return b[:half] })
		}},
		{"a shorter range", []hbackup.Kind{hbackup.KindUnsupported}, storage.Range{Offset: 10}, func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			return p.Rewrite(w, r, func(b []byte) []byte { return b[:half] })
		}},
		{"no range at all", []hbackup.Kind{hbackup.KindUnsupported}, storage.Range{Offset: 10, Length: 20}, func(p *proxy.Proxy, nth int, w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range")
			return false
		}},
		{"no generation", []hbackup.Kind{hbackup.KindUnsupported}, storage.Range{}, header("X-Goog-Generation", "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.RetryFor = 20 * time.Millisecond })
			if err := putBytes(t, direct, "a/key", data, false); err != nil {
				t.Fatal(err)
			}
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == opGet && tc.do(p, nth, w, r)
			})
			got, err := readRange(t, s, "a/key", tc.r)
			if err == nil || !hbackup.IsKind(err, tc.kinds...) {
				t.Fatalf("got kind %q, want %q: %v", hbackup.KindOf(err), tc.kinds, err)
			}
			if strings.Contains(err.Error(), "EOF") {
				t.Errorf("the error speaks of EOF: %v", err)
			}
			if len(got) > len(data) {
				t.Errorf("got %d bytes", len(got))
			}
		})
	}
}

// TestReadReplacedObject replaces the object between two requests of one reader,
// by one of the same size.
func TestReadReplacedObject(t *testing.T) {
	t.Parallel()
	s, direct, p := behind(t, nil)
	data, other := bytesFor(900_000), make([]byte, 900_000)
	if err := putBytes(t, direct, "a/key", data, false); err != nil {
		t.Fatal(err)
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op != opGet {
			return false
		}
		if nth == 1 {
			return p.CutAnswer(w, r, 500_000)
		}
		if err := putBytes(t, direct, "a/key", other, false); err != nil {
			t.Errorf("replace: %v", err)
		}
		return false
	})
	got, err := readRange(t, s, "a/key", storage.Range{})
	checkKind(t, err, hbackup.KindIncomplete)
	if !bytes.HasPrefix(data, got) {
		t.Error("bytes of two contents were mixed")
	}
}

// TestSilence has a store that accepts a request and says nothing, and one that
// stops in the middle of an answer.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"before the answer", "within the answer"} {
		t.Run(where, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.stall = 150 * time.Millisecond })
			data := bytesFor(1_000_000)
			if err := putBytes(t, direct, "a/key", data, false); err != nil {
				t.Fatal(err)
			}
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op != opGet || nth > 2 {
					return false
				}
				if where == "within the answer" {
					resp, err := p.Forward(r, r.Body)
					if err != nil {
						t.Errorf("forward: %v", err)
						return true
					}
					defer resp.Body.Close()
					proxy.Answer(w, resp)
					io.CopyN(w, resp.Body, 1000)
					http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				return true
			})
			got, err := readRange(t, s, "a/key", storage.Range{})
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("got %d bytes, %v", len(got), err)
			}
		})
	}
}
