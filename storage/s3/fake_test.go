package s3

import (
	"crypto/rand"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeS3 is a store in memory that notes what it is asked for. It keeps the
// objects' sizes and no bytes, and like a store with keys of a key service it gives
// every part a tag of its own.
type fakeS3 struct {
	*httptest.Server
	// refuse answers a request in place of the store, when it reports true.
	refuse func(op string, w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	asked   []asked
	objects map[string]stored
	uploads map[string]*fakeUpload
}

type asked struct {
	op     string
	header http.Header
}

type stored struct {
	size  int64
	stamp string
}

type fakeUpload struct {
	stamp string
	parts map[int]fakePart
}

type fakePart struct {
	tag  string
	size int64
}

// newFake starts a store and gives a configuration for it.
func newFake(t testing.TB, useTLS bool) (*fakeS3, Config) {
	f := &fakeS3{objects: map[string]stored{}, uploads: map[string]*fakeUpload{}}
	c := configFor(t, gateway)
	if f.Server = httptest.NewUnstartedServer(f); useTLS {
		f.StartTLS()
		c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
		if err := os.WriteFile(c.CAFile, ca, 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	c.Endpoint = f.URL
	return f, c
}

// headers gives the values of a header, by operation; "" where it was not sent.
func (f *fakeS3) headers(name string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for _, a := range f.asked {
		out[a.op] = a.header.Get(name)
	}
	return out
}

// count gives the number of requests of an operation.
func (f *fakeS3) count(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a.op == op {
			n++
		}
	}
	return n
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := operation(r)
	f.mu.Lock()
	f.asked = append(f.asked, asked{op, r.Header.Clone()})
	f.mu.Unlock()
	if f.refuse != nil && f.refuse(op, w, r) {
		return
	}
	sum := crc32.NewIEEE()
	body := new(strings.Builder)
	var size int64
	if op == "CompleteMultipartUpload" || op == "DeleteObjects" {
		size, _ = io.Copy(body, r.Body)
	} else {
		size, _ = io.Copy(sum, r.Body)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key, q := r.URL.Path, r.URL.Query()
	up := f.uploads[q.Get("uploadId")]
	if q.Has("uploadId") && up == nil {
		refuse(w, r, 404, "NoSuchUpload")
		return
	}
	switch op {
	case "PutObject":
		f.objects[key] = stored{size, r.Header.Get("X-Amz-Meta-" + stampName)}
		w.Header().Set("ETag", `"whole"`)
	case "HeadObject", "GetObject":
		o, ok := f.objects[key]
		if !ok {
			refuse(w, r, 404, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", `"whole"`)
		w.Header().Set("X-Amz-Meta-"+stampName, o.stamp)
		w.Header().Set("Content-Length", strconv.FormatInt(o.size, 10))
		if op == "GetObject" {
			io.CopyN(w, zeros{}, o.size)
		}
	case "CreateMultipartUpload":
		id := rand.Text()
		f.uploads[id] = &fakeUpload{r.Header.Get("X-Amz-Meta-" + stampName), map[int]fakePart{}}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case "UploadPart":
		n, _ := strconv.Atoi(q.Get("partNumber"))
		up.parts[n] = fakePart{`"` + rand.Text() + `"`, size}
		w.Header().Set("ETag", up.parts[n].tag)
	case "ListParts":
		after, _ := strconv.Atoi(q.Get("part-number-marker"))
		io.WriteString(w, "<ListPartsResult>")
		if p, ok := up.parts[after+1]; ok {
			fmt.Fprintf(w, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag><Size>%d</Size></Part>", after+1, p.tag, p.size)
		}
		io.WriteString(w, "</ListPartsResult>")
	case "CompleteMultipartUpload":
		whole, code := up.assemble(body.String())
		if code != "" {
			refuse(w, r, 400, code)
			return
		}
		f.objects[key] = stored{whole, up.stamp}
		delete(f.uploads, q.Get("uploadId"))
		io.WriteString(w, `<CompleteMultipartUploadResult><ETag>"of all"</ETag></CompleteMultipartUploadResult>`)
	case "AbortMultipartUpload":
		delete(f.uploads, q.Get("uploadId"))
		w.WriteHeader(204)
	case "ListObjectsV2":
		io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
	case "DeleteObjects":
		io.WriteString(w, "<DeleteResult>"+strings.ReplaceAll(strings.ReplaceAll(body.String()[strings.Index(body.String(), "<Object>"):], "Object>", "Deleted>"), "</Delete>", "</DeleteResult>"))
	case "DeleteObject":
		w.WriteHeader(204)
	}
}

// assemble checks the list of a completion by the rules, and gives the size of all.
func (u *fakeUpload) assemble(body string) (size int64, code string) {
	var list struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal([]byte(body), &list); err != nil {
		return 0, "MalformedXML"
	}
	if len(list.Part) == 0 || len(list.Part) > maxParts {
		return 0, "InvalidRequest"
	}
	for i, p := range list.Part {
		have, ok := u.parts[p.PartNumber]
		switch {
		case !ok || have.tag != p.ETag:
			return 0, "InvalidPart"
		case i > 0 && p.PartNumber <= list.Part[i-1].PartNumber:
			return 0, "InvalidPartOrder"
		}
		size += have.size
	}
	return size, ""
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
