package gcstest

import (
	"net/http"
	"strconv"
)

// rewrite copies an object, also to another bucket. It is done with the first
// request; the service may take several for large ones.
func (c *call) rewrite(fromBucket, from, toBucket, to string) error {
	var in attrs
	if err := c.readJSON(&in); err != nil {
		return err
	}
	in.Name = to
	t, err := c.target(toBucket, in)
	if err != nil {
		return err
	}
	conds, err := c.conditions("ifSource")
	if err != nil {
		return err
	}
	c.s.mu.Lock() // also while it copies: what is copied does not change meanwhile
	defer c.s.mu.Unlock()
	_, src, err := c.s.object(fromBucket, from)
	if err != nil {
		return err
	}
	if want := c.get("sourceGeneration"); want != "" && want != strconv.FormatInt(src.generation, 10) {
		return noObject(fromBucket, from)
	}
	if err := conds.check(src, false); err != nil {
		return err
	}
	b := c.s.buckets[toBucket]
	if err := t.conds.check(b.objects[to], false); err != nil {
		return err
	}
	if err := c.s.kept(b.objects[to]); err != nil {
		return err
	}
	data, err := c.s.join([]*blob{src.data})
	if err != nil {
		return err
	}
	data.md5 = src.data.md5
	a := src.attrs
	if in.ContentType != "" || in.Metadata != nil { // new metadata replaces the source's
		a = in
	}
	a.Name = to
	out := c.s.put(b, to, data, a)
	out.components, out.noMD5 = src.components, src.noMD5
	size := strconv.FormatInt(data.size, 10)
	c.json(http.StatusOK, map[string]any{"kind": "storage#rewriteResponse", "done": true, "objectSize": size, "totalBytesRewritten": size, "resource": out.resource()})
	return nil
}
