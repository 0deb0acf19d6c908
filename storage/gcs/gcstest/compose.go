package gcstest

import (
	"net/http"
	"strconv"
)

// maxSources is how many objects one compose request may name.
const maxSources = 32

// composeRequest is the body of a compose request.
type composeRequest struct {
	Destination   attrs
	SourceObjects []struct {
		Name                string
		Generation          string
		ObjectPreconditions struct{ IfGenerationMatch string }
	}
	DeleteSourceObjects bool
}

// compose makes one object of the contents of up to 32 others.
func (c *call) compose(bucketName, name string) error {
	var in composeRequest
	if err := c.readJSON(&in); err != nil {
		return err
	}
	if n := len(in.SourceObjects); n < 1 || n > maxSources {
		return invalid("The number of source components provided (%d) must be between 1 and %d.", n, maxSources)
	}
	in.Destination.Name = name
	t, err := c.target(bucketName, in.Destination)
	if err != nil {
		return err
	}
	c.s.mu.Lock() // also while it copies: what is composed does not change meanwhile
	defer c.s.mu.Unlock()
	b := c.s.buckets[bucketName]
	if err := t.conds.check(b.objects[name], false); err != nil {
		return err
	}
	if err := c.s.kept(b.objects[name]); err != nil {
		return err
	}
	var sources []*blob
	components := 0
	for _, src := range in.SourceObjects {
		o := b.objects[src.Name]
		switch {
		case o == nil, src.Generation != "" && src.Generation != strconv.FormatInt(o.generation, 10):
			return noObject(bucketName, src.Name)
		case src.ObjectPreconditions.IfGenerationMatch != "" && src.ObjectPreconditions.IfGenerationMatch != strconv.FormatInt(o.generation, 10):
			return errCondition
		}
		components += max(o.components, 1)
		sources = append(sources, o.data)
	}
	data, err := c.s.join(sources)
	if err != nil {
		return err
	}
	if want := in.Destination.CRC32C; want != "" && want != data.crc32c() {
		data.drop()
		return invalid("Provided crc32c %q doesn't match calculated crc32c %q.", want, data.crc32c())
	}
	out := c.s.put(b, name, data, in.Destination)
	out.components, out.noMD5 = components, true
	if in.DeleteSourceObjects {
		for _, src := range in.SourceObjects {
			if o := b.objects[src.Name]; o != nil && o != out && c.s.kept(o) == nil {
				b.forget(src.Name)
				o.data.drop()
			}
		}
	}
	c.json(http.StatusOK, out.resource())
	return nil
}

// move renames an object inside of a bucket, atomically.
func (c *call) move(bucketName, from, to string) error {
	t, err := c.target(bucketName, attrs{Name: to})
	if err != nil {
		return err
	}
	conds, err := c.conditions("ifSource")
	if err != nil {
		return err
	}
	if from == to {
		return invalid("The source and the destination are the same.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	b, src, err := c.s.object(bucketName, from)
	if err != nil {
		return err
	}
	if err := conds.check(src, false); err != nil {
		return err
	}
	if err := t.conds.check(b.objects[to], false); err != nil {
		return err
	}
	for _, o := range []*object{src, b.objects[to]} {
		if err := c.s.kept(o); err != nil {
			return err
		}
	}
	b.forget(from)
	out := c.s.put(b, to, src.data, src.attrs)
	out.components, out.noMD5 = src.components, src.noMD5
	c.json(http.StatusOK, out.resource())
	return nil
}
