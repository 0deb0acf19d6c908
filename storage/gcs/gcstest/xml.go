package gcstest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// minPart is the least size of a part that is not the last one.
const minPart = 5 << 20

// upload is a multipart upload of the XML API.
type upload struct {
	bucket, name string
	began        time.Time
	attrs        attrs
	parts        map[int]*blob
	done         *object // once it is completed
}

// serveXML serves paths of the form BUCKET/OBJECT: reads, and multipart uploads.
func (c *call) serveXML(path string) error {
	c.xml = true
	bucketName, name, isObject := strings.Cut(path, "/")
	name, err := url.PathUnescape(name)
	if err != nil {
		return xmlInvalid("InvalidURI", "The path is not encoded rightly.")
	}
	for h := range c.r.Header {
		if strings.HasPrefix(h, "X-Goog-If-") && (c.has("uploads") || c.has("uploadId")) {
			return xmlInvalid("InvalidArgument", "Multipart uploads take no preconditions.")
		}
	}
	m := c.r.Method
	switch {
	case !isObject || name == "":
		if m == http.MethodGet && c.has("uploads") {
			return c.listUploads(bucketName)
		}
	case c.has("uploads") && m == http.MethodPost:
		return c.initiate(bucketName, name)
	case c.has("uploadId"):
		return c.serveUploadID(bucketName, name)
	case m == http.MethodGet || m == http.MethodHead:
		c.s.mu.Lock()
		_, o, err := c.s.object(bucketName, name)
		if err != nil {
			c.s.mu.Unlock()
			return failure{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
		}
		for k, v := range o.attrs.Metadata {
			c.w.Header().Set("X-Goog-Meta-"+k, v)
		}
		return c.media(o)
	}
	return failure{http.StatusMethodNotAllowed, "MethodNotAllowed", "Method not allowed."}
}

func (c *call) serveUploadID(bucketName, name string) error {
	var part *blob
	if c.r.Method == http.MethodPut {
		var err error
		if part, err = c.readPart(); err != nil {
			return err
		}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	id := c.get("uploadId")
	u := c.s.uploads[id]
	// To all but a repeated completion a completed upload is gone.
	if u == nil || u.bucket != bucketName || u.name != name || u.done != nil && c.r.Method != http.MethodPost {
		part.drop()
		return failure{http.StatusNotFound, "NoSuchUpload", "The requested upload was not found."}
	}
	switch m := c.r.Method; {
	case m == http.MethodPost:
		return c.complete(id, u)
	case m == http.MethodPut:
		return c.putPart(u, part)
	case m == http.MethodGet:
		return c.listParts(id, u)
	case m == http.MethodDelete:
		for _, p := range u.parts {
			p.drop()
		}
		delete(c.s.uploads, id)
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return failure{http.StatusMethodNotAllowed, "MethodNotAllowed", "Method not allowed."}
}

func (c *call) initiate(bucketName, name string) error {
	if checkName(name) != nil {
		return xmlInvalid("InvalidObjectName", "The name is not allowed.")
	}
	a := attrs{Name: name, ContentType: c.r.Header.Get("Content-Type"), StorageClass: c.r.Header.Get("X-Goog-Storage-Class"), Metadata: map[string]string{}}
	for h, v := range c.r.Header {
		if k, ok := strings.CutPrefix(h, "X-Goog-Meta-"); ok {
			a.Metadata[strings.ToLower(k)] = v[0]
		}
	}
	id := rand.Text()
	c.s.mu.Lock()
	_, err := c.s.bucket(bucketName)
	if err == nil {
		c.s.uploads[id] = &upload{bucket: bucketName, name: name, began: c.s.opts.Now().UTC(), attrs: a, parts: map[int]*blob{}}
	}
	c.s.mu.Unlock()
	if err != nil {
		return noBucketXML
	}
	return c.xmlAnswer(struct {
		XMLName  struct{} `xml:"InitiateMultipartUploadResult"`
		Bucket   string
		Key      string
		UploadId string
	}{Bucket: bucketName, Key: name, UploadId: id})
}

// readPart reads the body of a part and checks it.
func (c *call) readPart() (*blob, error) {
	data := c.s.newBlob()
	_, err := io.Copy(data, c.r.Body)
	if err == nil {
		err = data.seal()
	}
	if err != nil {
		data.drop()
		return nil, xmlInvalid("IncompleteBody", "The body broke off.")
	}
	sums := hashes(c.r.Header)
	for _, want := range [][2]string{{sums["crc32c"], data.crc32c()}, {sums["md5"], data.md5Hash()}, {c.r.Header.Get("Content-Md5"), data.md5Hash()}} {
		if want[0] != "" && want[0] != want[1] {
			data.drop()
			return nil, xmlInvalid("BadDigest", "The checksum you specified did not match what we received.")
		}
	}
	return data, nil
}

// putPart keeps a part. The lock is held.
func (c *call) putPart(u *upload, data *blob) error {
	n, err := strconv.Atoi(c.get("partNumber"))
	if err != nil || n < 1 || n > 10_000 {
		data.drop()
		return xmlInvalid("InvalidArgument", "Part numbers are 1 to 10000.")
	}
	u.parts[n].drop()
	u.parts[n] = data
	c.w.Header().Set("ETag", partTag(data))
	c.w.Header().Add("X-Goog-Hash", "crc32c="+data.crc32c())
	c.w.Header().Add("X-Goog-Hash", "md5="+data.md5Hash())
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func partTag(b *blob) string { return `"` + hex.EncodeToString(b.md5.Sum(nil)) + `"` }

// complete makes the object. Repeated, it gives the same answer.
func (c *call) complete(id string, u *upload) error {
	if u.done == nil {
		if err := c.assemble(u); err != nil {
			return err
		}
	}
	c.w.Header().Set("X-Goog-Hash", "crc32c="+u.done.data.crc32c())
	c.w.Header().Set("X-Goog-Generation", strconv.FormatInt(u.done.generation, 10))
	return c.xmlAnswer(struct {
		XMLName struct{} `xml:"CompleteMultipartUploadResult"`
		Bucket  string
		Key     string
		ETag    string
	}{Bucket: u.bucket, Key: u.name, ETag: `"` + u.done.etag() + `"`})
}

func (c *call) assemble(u *upload) error {
	var in struct {
		XMLName struct{} `xml:"CompleteMultipartUpload"`
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.NewDecoder(io.LimitReader(c.r.Body, 4*maxJSON)).Decode(&in); err != nil || len(in.Part) == 0 {
		return xmlInvalid("MalformedXML", "The list of parts cannot be read.")
	}
	for i, p := range in.Part {
		data := u.parts[p.PartNumber]
		switch {
		case i > 0 && p.PartNumber <= in.Part[i-1].PartNumber:
			return xmlInvalid("InvalidPartOrder", "The parts are not in ascending order.")
		case data == nil || strings.Trim(p.ETag, `"`) != strings.Trim(partTag(data), `"`):
			return xmlInvalid("InvalidPart", "A part was not found, or has another entity tag.")
		case data.size < minPart && i < len(in.Part)-1:
			return xmlInvalid("EntityTooSmall", "A part is too small.")
		}
	}
	var data []*blob
	for _, p := range in.Part {
		data = append(data, u.parts[p.PartNumber])
	}
	whole, err := c.s.join(data)
	if err != nil {
		return err
	}
	b := c.s.buckets[u.bucket]
	if err := c.s.kept(b.objects[u.name]); err != nil {
		whole.drop()
		return err
	}
	u.done = c.s.put(b, u.name, whole, u.attrs)
	u.done.noMD5 = true
	for _, p := range u.parts {
		p.drop()
	}
	u.parts = nil
	return nil
}

var noBucketXML = failure{http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist."}

func xmlInvalid(code, message string) error { return failure{http.StatusBadRequest, code, message} }

func (c *call) xmlAnswer(v any) error {
	c.w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
	c.w.WriteHeader(http.StatusOK)
	io.WriteString(c.w, xml.Header)
	xml.NewEncoder(c.w).Encode(v) // a client that went away gets nothing
	return nil
}
