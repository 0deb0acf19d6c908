package gcs

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// begin opens an upload that is aborted at the end, at the latest.
func begin(t testing.TB, s *Store, name string) upload {
	t.Helper()
	u, err := s.beginUpload(t.Context(), s.full(name), map[string]string{stampName: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func sendPart(t testing.TB, u upload, number int, data []byte) part {
	t.Helper()
	p, err := u.put(t.Context(), number, data, crcOf(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestUpload goes the whole way, parts out of order and one of them twice, under
// names that a URL has to quote.
func TestUpload(t *testing.T) {
	t.Parallel()
	s := open(t, configFor(t))
	for _, name := range []string{"plain", "a b/c+d%25/é&?#=;@$/~x", "x.y_z-"} {
		first, last := bytesFor(minPart), bytesFor(1000)
		u := begin(t, s, name)
		tail := sendPart(t, u, 7, last)
		sendPart(t, u, 2, bytesFor(minPart+1))
		head := sendPart(t, u, 2, first)
		checkAbsent(t, s, "plain-not-yet")
		if _, err := s.object(storage.Key(name)).Attrs(t.Context()); !isMissing(err) {
			t.Fatalf("%s is visible before its completion: %v", name, err)
		}
		there, err := u.parts(t.Context())
		if err != nil || len(there) != 2 || there[0] != (part{2, head.Tag, minPart}) || there[1] != (part{7, tail.Tag, 1000}) {
			t.Fatalf("the parts of %s are %+v, %v", name, there, err)
		}
		if err := u.complete(t.Context(), []part{head, tail}); err != nil {
			t.Fatalf("complete %s: %v", name, err)
		}
		checkHas(t, s, storage.Key(name), append(first, last...))
		attrs, err := s.object(storage.Key(name)).Attrs(t.Context())
		if err != nil || attrs.Metadata[stampName] != "mine" {
			t.Errorf("%s has the metadata %v, %v", name, attrs.Metadata, err)
		}
		if open, err := s.uploads(t.Context(), s.full("")); err != nil || len(open) > 0 {
			t.Errorf("open after the completion: %v, %v", open, err)
		}
	}
}

// TestOpenUploads lists and aborts uploads over pages, and none of a neighbour
// whose name begins alike.
func TestOpenUploads(t *testing.T) {
	t.Parallel()
	s, _, p := behind(t, nil)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		q.Set("max-uploads", "3") // of which the listing needs many
		q.Set("max-parts", "2")
		r.URL.RawQuery = q.Encode()
		return false
	})
	var want []string
	for i := range 8 {
		u := begin(t, s, fmt.Sprintf("x/%d", i/2)) // two of each name
		want = append(want, u.name+" "+u.id)
	}
	neighbour := begin(t, s, "x0/1")
	slices.Sort(want)
	open, err := s.uploads(t.Context(), s.full("x/"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range open {
		if time.Since(o.Began).Abs() > time.Minute {
			t.Errorf("%s began at %v", o.Name, o.Began)
		}
		got = append(got, o.Name+" "+o.ID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%q\nwant\n%q", got, want)
	}
	for _, o := range open {
		u := upload{s: s, name: o.Name, id: o.ID}
		for range 2 { // of which the second finds nothing
			if err := u.abort(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := u.put(t.Context(), 1, nil, 0); !isMissing(err) {
			t.Errorf("a part of an aborted upload: %v", err)
		}
	}
	var numbers []int
	for n := range 5 {
		sendPart(t, neighbour, n+1, []byte("x"))
	}
	parts, err := neighbour.parts(t.Context())
	for _, p := range parts {
		numbers = append(numbers, p.Number)
	}
	if err != nil || !slices.Equal(numbers, []int{1, 2, 3, 4, 5}) {
		t.Fatalf("the neighbour's parts are %v, %v", numbers, err)
	}
	left, err := s.uploads(t.Context(), s.full(""))
	if err != nil || len(left) != 1 || left[0].ID != neighbour.id {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestUploadRefused has parts and completions that the service must not take.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	s := open(t, configFor(t))
	u := begin(t, s, "a/key")
	_, err := u.put(t.Context(), 1, []byte("bytes"), 1)
	if !isDamage(err) {
		t.Errorf("a part with the wrong checksum: %v", err)
	}
	checkKind(t, s.fail(t.Context(), "put", "a/key", err), hbackup.KindCorrupt)
	small, last := sendPart(t, u, 1, []byte("small")), sendPart(t, u, 2, []byte("last"))
	for name, parts := range map[string][]part{
		"a small part in the middle": {small, last},
		"out of order":               {last, small},
		"twice":                      {last, last},
		"another tag":                {{Number: 2, Tag: small.Tag}},
		"a part that is not there":   {{Number: 3, Tag: small.Tag}},
		"no part":                    {},
	} {
		if err := u.complete(t.Context(), parts); statusOf(err) != 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
	checkAbsent(t, s, "a/key")
	if err := u.complete(t.Context(), []part{last}); err != nil {
		t.Errorf("after all refusals: %v", err)
	}
	checkHas(t, s, "a/key", []byte("last"))

	c := configFor(t)
	c.Bucket = "no-such-bucket"
	other := open(t, c)
	if _, err := other.beginUpload(t.Context(), "x", nil); !isMissing(err) || lacksUploads(err) {
		t.Errorf("no bucket: %v", err)
	} else {
		checkKind(t, other.fail(t.Context(), "put", "x", err), hbackup.KindUsage)
	}
	if err := (upload{s: s, name: s.full("none"), id: "none"}).complete(t.Context(), []part{small}); !isMissing(err) {
		t.Errorf("no upload: %v", err)
	}
}

// TestUploadFaults has each request of an upload fail in ways that pass.
func TestUploadFaults(t *testing.T) {
	t.Parallel()
	head, tail := bytesFor(minPart), bytesFor(1000)
	for name, do := range map[string]func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool{
		"503": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return refuseXML(w, r, 503, "ServiceUnavailable")
		},
		"429": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return refuseXML(w, r, 429, "TooManyRequests")
		},
		"good status": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == "POST" && refuseXML(w, r, 200, "InternalError")
		},
		"reset": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return proxy.CutRequest(t, w, r, r.ContentLength/2)
		},
		"answer cut": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == "POST" && !strings.Contains(r.URL.RawQuery, "uploadId") && p.CutAnswer(w, r, 50)
		},
		"answer lost": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool { return p.LoseAnswer(t, w, r) },
		"bytes damaged": func(p *proxy.Proxy, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == "PUT" && p.Damage(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, direct, p := behind(t, nil)
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool { return nth <= 2 && do(p, w, r) })
			u := begin(t, s, "a/key")
			parts := []part{sendPart(t, u, 1, head), sendPart(t, u, 2, tail)}
			if err := u.complete(t.Context(), parts); err != nil {
				t.Fatal(err)
			}
			checkHas(t, direct, "a/key", append(bytes.Clone(head), tail...))
		})
	}
}

// TestUploadAnswers has answers that are none of the service's.
func TestUploadAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing": "", "HTML": "<html>hello</html>", "JSON": "{}", "other XML": "<ListBucketResult/>", "cut off": "<InitiateMultipartUploadResult><UploadId>",
		"no id": "<InitiateMultipartUploadResult><Key>k</Key></InitiateMultipartUploadResult>",
	} {
		s, _, p := behind(t, nil)
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, answer)
			return true
		})
		if _, err := s.beginUpload(t.Context(), "x", nil); !hbackup.IsKind(err, hbackup.KindUnsupported) || !lacksUploads(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.uploads(t.Context(), "x/"); !hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Errorf("%s, listing: %v", name, err)
		}
		u := upload{s: s, name: "x", id: "id"}
		if _, err := u.put(t.Context(), 1, nil, 0); !hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Errorf("%s, part: %v", name, err)
		}
		if err := u.complete(t.Context(), nil); !hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Errorf("%s, completion: %v", name, err)
		}
	}
}

// refuseXML answers with one of the XML API's errors.
func refuseXML(w http.ResponseWriter, r *http.Request, status int, code string) bool {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version='1.0' encoding='UTF-8'?><Error><Code>%s</Code><Message>says the proxy</Message></Error>`, code)
	return true
}
