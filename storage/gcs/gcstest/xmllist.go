package gcstest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// longestList is how many uploads or parts one answer gives at most.
const longestList = 1000

// limit reads how many the client wants at most.
func (c *call) limit(name string) (int, error) {
	if !c.has(name) {
		return longestList, nil
	}
	n, err := strconv.Atoi(c.get(name))
	if err != nil || n < 1 {
		return 0, xmlInvalid("InvalidArgument", "Invalid value for "+name+".")
	}
	return min(n, longestList), nil
}

// listParts gives a page of the parts that are there, in the order of their
// numbers. The lock is held.
func (c *call) listParts(id string, u *upload) error {
	type item struct {
		PartNumber int
		ETag       string
		Size       int64
	}
	out := struct {
		XMLName              struct{} `xml:"ListPartsResult"`
		Bucket               string
		Key                  string
		UploadId             string
		IsTruncated          bool
		NextPartNumberMarker int `xml:",omitempty"`
		Part                 []item
	}{Bucket: u.bucket, Key: u.name, UploadId: id}
	most, err := c.limit("max-parts")
	if err != nil {
		return err
	}
	after := 0
	if c.has("part-number-marker") {
		if after, err = strconv.Atoi(c.get("part-number-marker")); err != nil {
			return xmlInvalid("InvalidArgument", "Invalid value for part-number-marker.")
		}
	}
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		switch {
		case n <= after:
			continue
		case len(out.Part) == most:
			out.IsTruncated = true
			out.NextPartNumberMarker = out.Part[most-1].PartNumber
			return c.xmlAnswer(out)
		}
		out.Part = append(out.Part, item{n, partTag(u.parts[n]), u.parts[n].size})
	}
	return c.xmlAnswer(out)
}

// listUploads gives a page of the uploads that are neither completed nor aborted,
// in the order of the names.
func (c *call) listUploads(bucketName string) error {
	type item struct {
		Key, UploadId string
		Initiated     time.Time
	}
	out := struct {
		XMLName            struct{} `xml:"ListMultipartUploadsResult"`
		Bucket             string
		IsTruncated        bool
		NextKeyMarker      string `xml:",omitempty"`
		NextUploadIdMarker string `xml:",omitempty"`
		Upload             []item
	}{Bucket: bucketName}
	most, err := c.limit("max-uploads")
	switch {
	case err != nil:
		return err
	case c.has("delimiter"):
		return failure{501, "NotImplemented", "Uploads are not listed by delimiter here."}
	}
	after := item{Key: c.get("key-marker"), UploadId: c.get("upload-id-marker")}
	var all []item
	c.s.mu.Lock()
	_, err = c.s.bucket(bucketName)
	for id, u := range c.s.uploads {
		if u.bucket == bucketName && u.done == nil && strings.HasPrefix(u.name, c.get("prefix")) {
			all = append(all, item{u.name, id, u.began})
		}
	}
	c.s.mu.Unlock()
	if err != nil {
		return noBucketXML
	}
	order := func(a, b item) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.UploadId, b.UploadId))
	}
	slices.SortFunc(all, order)
	for _, u := range all {
		switch {
		case after.Key != "" && (u.Key < after.Key || u.Key == after.Key && (after.UploadId == "" || u.UploadId <= after.UploadId)):
			continue
		case len(out.Upload) == most:
			last := out.Upload[most-1]
			out.IsTruncated, out.NextKeyMarker, out.NextUploadIdMarker = true, last.Key, last.UploadId
			return c.xmlAnswer(out)
		}
		out.Upload = append(out.Upload, u)
	}
	return c.xmlAnswer(out)
}
