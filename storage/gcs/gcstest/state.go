package gcstest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// bucket holds objects. Names are those of the objects, in order.
type bucket struct {
	name    string
	created time.Time
	objects map[string]*object
	names   []string
}

// object is one generation of an object. Only what a PATCH changes is ever
// replaced, and then in a copy.
type object struct {
	bucket, name string
	generation   int64
	metagen      int64
	created      time.Time
	updated      time.Time
	data         *blob
	components   int // 0 for objects that were not composed
	noMD5        bool
	retention    time.Duration // the bucket's
	attrs        attrs
}

// attrs are what a client may set of an object, in the words of the JSON API.
type attrs struct {
	Name            string            `json:"name,omitempty"`
	ContentType     string            `json:"contentType,omitempty"`
	ContentEncoding string            `json:"contentEncoding,omitempty"`
	CacheControl    string            `json:"cacheControl,omitempty"`
	StorageClass    string            `json:"storageClass,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	CRC32C          string            `json:"crc32c,omitempty"`
	MD5Hash         string            `json:"md5Hash,omitempty"`
}

// put makes an object visible. The lock is held.
func (s *Server) put(b *bucket, name string, data *blob, a attrs) *object {
	now := s.opts.Now().UTC()
	o := &object{bucket: b.name, name: name, retention: s.opts.Retention, generation: s.generation(), metagen: 1, created: now, updated: now, data: data, attrs: a}
	if old := b.objects[name]; old != nil {
		old.data.drop()
	}
	if i, there := slices.BinarySearch(b.names, name); !there {
		b.names = slices.Insert(b.names, i, name)
	}
	b.objects[name] = o
	return o
}

// kept refuses to take away an object that the bucket's retention policy still
// keeps; nil is none. The lock is held.
func (s *Server) kept(o *object) error {
	if o == nil || s.opts.Retention == 0 || !s.opts.Now().Before(o.created.Add(s.opts.Retention)) {
		return nil
	}
	return failure{http.StatusForbidden, "retentionPolicyNotMet", "The object is subject to the bucket's retention policy."}
}

// forget takes an object out of the bucket, and leaves its content. The lock is
// held.
func (b *bucket) forget(name string) {
	if i, there := slices.BinarySearch(b.names, name); there {
		b.names = slices.Delete(b.names, i, i+1)
	}
	delete(b.objects, name)
}

// checkName applies the service's rules for the names of objects.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 1024:
		return invalid("The name must have 1 to 1024 bytes.")
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n"):
		return invalid("The name holds characters that are not allowed.")
	case name == "." || name == ".." || strings.HasPrefix(name, ".well-known/acme-challenge/"):
		return invalid("The name is reserved.")
	}
	return nil
}

// resource is what the JSON API shows of an object.
func (o *object) resource() map[string]any {
	gen := strconv.FormatInt(o.generation, 10)
	out := map[string]any{
		"kind": "storage#object", "id": o.bucket + "/" + o.name + "/" + gen,
		"bucket": o.bucket, "name": o.name,
		"generation": gen, "metageneration": strconv.FormatInt(o.metagen, 10),
		"size": strconv.FormatInt(o.data.size, 10), "crc32c": o.data.crc32c(),
		"etag": o.etag(), "storageClass": o.class(),
		"timeCreated": o.created.Format(time.RFC3339Nano), "updated": o.updated.Format(time.RFC3339Nano),
	}
	if !o.noMD5 {
		out["md5Hash"] = o.data.md5Hash()
	}
	if o.retention > 0 {
		out["retentionExpirationTime"] = o.created.Add(o.retention).Format(time.RFC3339Nano)
	}
	if o.components > 0 {
		out["componentCount"] = o.components
	}
	for k, v := range map[string]string{
		"contentType": o.attrs.ContentType, "contentEncoding": o.attrs.ContentEncoding, "cacheControl": o.attrs.CacheControl,
	} {
		if v != "" {
			out[k] = v
		}
	}
	if len(o.attrs.Metadata) > 0 {
		out["metadata"] = o.attrs.Metadata
	}
	return out
}

func (o *object) etag() string {
	return strconv.FormatInt(o.generation, 36) + "." + strconv.FormatInt(o.metagen, 36)
}

func (o *object) class() string {
	if o.attrs.StorageClass != "" {
		return o.attrs.StorageClass
	}
	return "STANDARD"
}
