package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// threeParts are uploaded in the tests of this file; the second has the trouble.
var threeParts = bytesFor(2*minPartSize + 77)

// partFault handles one request for a part, the nth for that part.
type partFault func(number string, nth int, w http.ResponseWriter, r *http.Request) bool

// onParts does to requests for parts what the fault says, and gives the number of
// requests for each part, and of looks at what the store has "behind" one.
func onParts(p *proxy.Proxy, f partFault) (requests func(number string) int) {
	var mu sync.Mutex
	count := map[string]int{}
	p.Set(func(op string, _ int, w http.ResponseWriter, r *http.Request) bool {
		if op == "ListParts" {
			mu.Lock()
			count["looks behind "+r.URL.Query().Get("part-number-marker")]++
			mu.Unlock()
		}
		if op != "UploadPart" {
			return false
		}
		number := r.URL.Query().Get("partNumber")
		mu.Lock()
		count[number]++
		nth := count[number]
		mu.Unlock()
		return f(number, nth, w, r)
	})
	return func(number string) int {
		mu.Lock()
		defer mu.Unlock()
		return count[number]
	}
}

// carryOut has the gateway carry the request out, whatever becomes of its
// connection, and gives the answer.
func carryOut(t *testing.T, p *proxy.Proxy, r *http.Request, body []byte) *http.Response {
	resp, err := p.Forward(r.WithContext(context.WithoutCancel(r.Context())), bytes.NewReader(body))
	if err != nil {
		t.Errorf("forward: %v", err)
		return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	resp.Body = http.NoBody
	return resp
}

// TestSlowPartIsSentTwice has a part that takes much longer than its peers, with
// every outcome that two requests for it can have.
func TestSlowPartIsSentTwice(t *testing.T) {
	const anyNumber = -1 // it depends on what the buffers of a connection hold
	for _, tc := range []struct {
		name          string
		first, second func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, other <-chan struct{})
		listed        int // looks at what the store has
	}{
		{"the first stops within its bytes", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			io.CopyN(io.Discard, r.Body, 1000)
			<-second
			proxy.Reset(t, w)
		}, nil, anyNumber},
		{"the first is never answered", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, nil, 1},
		{"both land", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			body, _ := io.ReadAll(r.Body)
			<-second
			proxy.Answer(w, carryOut(t, p, r, body))
		}, nil, 0},
		{"both land, each with its tag", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			body, _ := io.ReadAll(r.Body)
			<-second
			proxy.Answer(w, carryOut(t, p, r, body))
		}, func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			body, _ := io.ReadAll(r.Body)
			resp := carryOut(t, p, r, body)
			resp.Header.Set("ETag", `"of a copy that is replaced"`)
			proxy.Answer(w, resp)
		}, 1},
		{"the second fails", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			body, _ := io.ReadAll(r.Body)
			<-second
			proxy.Answer(w, carryOut(t, p, r, body))
		}, func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			refuse(w, r, 403, "AccessDenied")
		}, 0},
		{"the first fails", func(t *testing.T, p *proxy.Proxy, w http.ResponseWriter, r *http.Request, second <-chan struct{}) {
			<-second
			refuse(w, r, 403, "AccessDenied")
		}, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) {
				c.settle, c.hedge = 200*time.Millisecond, 20*time.Millisecond
			})
			for range fewestPeers {
				s.peers.note(minPartSize, time.Millisecond)
			}
			over := make(chan struct{}) // the second request for the part was answered
			requests := onParts(p, func(number string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case number != "2":
					return false
				case nth == 1:
					tc.first(t, p, w, r, over)
					return true
				case nth > 2:
					return false
				}
				defer close(over)
				if tc.second != nil {
					tc.second(t, p, w, r, nil)
				} else {
					body, _ := io.ReadAll(r.Body)
					proxy.Answer(w, carryOut(t, p, r, body))
				}
				http.NewResponseController(w).Flush()
				return true
			})
			if err := putBytes(t, s, "a/key", threeParts, true); err != nil {
				t.Fatal(err)
			}
			if n := requests("2"); n != 2 {
				t.Errorf("the part was sent %d times", n)
			}
			if n := requests("looks behind 1"); n != tc.listed && tc.listed != anyNumber {
				t.Errorf("%d looks at the part; want %d", n, tc.listed)
			}
			checkHas(t, direct, "a/key", threeParts)
			checkNoUploads(t, direct)
			if !s.buffers.lent.TryAcquire(s.buffers.budget) {
				t.Error("a buffer is still lent")
			}
		})
	}
}

// TestUploadIsResumed has an outage that outlasts all attempts of one part: the
// parts that are stored are not sent again, and neither is the one itself when it
// has been stored without an answer.
func TestUploadIsResumed(t *testing.T) {
	const attempts = 2
	for _, tc := range []struct {
		name string
		do   func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool
		sent int // requests for the part in all
	}{
		{"connections reset", func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return proxy.CutRequest(t, w, r, r.ContentLength/2)
		}, attempts + 1},
		{"store away", func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return refuse(w, r, 503, "ServiceUnavailable")
		}, attempts + 1},
		{"answers lost", func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return p.LoseAnswer(t, w, r)
		}, attempts},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = attempts })
			requests := onParts(p, func(number string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return number == "2" && nth <= attempts && tc.do(p, w, r)
			})
			if err := putBytes(t, s, "a/key", threeParts, false); err != nil {
				t.Fatal(err)
			}
			for number, want := range map[string]int{"1": 1, "2": tc.sent, "3": 1} {
				if n := requests(number); n != want {
					t.Errorf("part %s was sent %d times; want %d", number, n, want)
				}
			}
			checkHas(t, direct, "a/key", threeParts)
			checkNoUploads(t, direct)
		})
	}
}

// TestPartsOutOfTheirTime has requests for a part that the network doubles, and
// one that arrives long after the client has given it up and sent it again.
func TestPartsOutOfTheirTime(t *testing.T) {
	for name, make := range map[string]func(p *proxy.Proxy) partFault{
		"doubled": func(p *proxy.Proxy) partFault {
			return func(number string, nth int, w http.ResponseWriter, r *http.Request) bool {
				body, _ := io.ReadAll(r.Body)
				carryOut(t, p, r, body)
				proxy.Answer(w, carryOut(t, p, r, body))
				return true
			}
		},
		"late": func(p *proxy.Proxy) partFault {
			var late func()
			return func(number string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case number != "2" || nth > 2:
					return false
				case nth == 1:
					body, _ := io.ReadAll(r.Body)
					late = func() { carryOut(t, p, r, body) }
					proxy.Reset(t, w)
					return true
				}
				body, _ := io.ReadAll(r.Body)
				resp := carryOut(t, p, r, body)
				late()
				proxy.Answer(w, resp)
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, direct, p := behind(t, nil)
			onParts(p, make(p))
			if err := putBytes(t, s, "a/key", threeParts, true); err != nil {
				t.Fatal(err)
			}
			checkHas(t, direct, "a/key", threeParts)
			checkNoUploads(t, direct)
		})
	}
}

// TestStormOfManyPuts has a store that takes few requests at a time and refuses
// all others: every put succeeds in the end, and the store is asked less and less.
func TestStormOfManyPuts(t *testing.T) {
	const puts, room = 96, 3
	s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 30 })
	var under, refusals atomic.Int32
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		defer under.Add(-1)
		if under.Add(1) > room {
			refusals.Add(1)
			return refuse(w, r, 503, "SlowDown")
		}
		p.Pass(w, r)
		return true
	})
	var all sync.WaitGroup
	for i := range puts {
		all.Go(func() {
			if err := putBytes(t, s, storage.Key(fmt.Sprintf("k%02d", i)), []byte{byte(i)}, true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !s.gate.narrowed() {
		t.Error("the gate is wide open after a storm")
	}
	if n := refusals.Load(); n == 0 || n > 4*puts {
		t.Errorf("%d refusals of %d puts", n, puts)
	}
	keys, err := listKeys(t, direct)
	if err != nil || len(keys) != puts {
		t.Errorf("%d objects, %v", len(keys), err)
	}
}

// TestClockOff has stores whose clock is 20 minutes from ours, and which refuse
// what is signed with another time: the client goes by the store's.
func TestClockOff(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		s, _, p := behind(t, nil)
		refused := 0
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			now := time.Now().Add(off).UTC()
			w.Header().Set("Date", now.Format(http.TimeFormat))
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || signed.Sub(now).Abs() > 15*time.Minute {
				refused++
				return refuse(w, r, 403, "RequestTimeTooSkewed")
			}
			io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"x"`)
			return true
		})
		for range 3 {
			if err := putBytes(t, s, "a/key", bytesFor(100), true); err != nil {
				t.Fatalf("%v off: %v", off, err)
			}
		}
		if refused != 1 {
			t.Errorf("%v off: %d requests were refused; want the first only", off, refused)
		}
	}
}
