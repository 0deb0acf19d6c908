package catalog

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"hbackup/storage"
)

// Reference is another location that holds files of an image. The id is what
// counts, as a location may be moved; the name is for people.
type Reference struct {
	Location string           `json:"location"` // the id in the location's marker
	Name     storage.Location `json:"name"`     // its fully qualified name when the image was made
	Files    int              `json:"files"`
	Bytes    int64            `json:"bytes"`
}

// ReferencesOf counts the files that lie in other locations; name gives the
// qualified name of a location id. They come in the order of the ids.
func ReferencesOf(files []File, name func(id string) storage.Location) []Reference {
	var out []Reference
	for i := range files {
		f := &files[i]
		if f.Location == "" {
			continue
		}
		at, found := slices.BinarySearchFunc(out, f.Location, func(r Reference, id string) int { return strings.Compare(r.Location, id) })
		if !found {
			out = slices.Insert(out, at, Reference{Location: f.Location, Name: name(f.Location)})
		}
		out[at].Files++
		out[at].Bytes += f.Size
	}
	return out
}

// CanBeReferred reports whether images may name files in the place: it is known
// which location it is.
func (p Place) CanBeReferred() bool { return isLocationID(p.LocationID) }

func isLocationID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 16
}

// checkReferences holds the head to what its format allows.
func (h *Header) checkReferences() error {
	if (h.Format == FormatWithReferences) != (len(h.References) > 0) {
		return fmt.Errorf("%d references in a manifest of format %d", len(h.References), h.Format)
	}
	for i, r := range h.References {
		if !isLocationID(r.Location) {
			return fmt.Errorf("%q is no location id", r.Location)
		}
		if i > 0 && h.References[i-1].Location >= r.Location {
			return fmt.Errorf("the references are out of order")
		}
	}
	return nil
}

// referenceCheck holds the files of an image against the references of its head.
type referenceCheck struct {
	want []Reference
	got  []Reference
	last int // of the file before: neighbours mostly lie in one place
}

func newReferenceCheck(want []Reference) referenceCheck {
	return referenceCheck{want: want, got: make([]Reference, len(want))}
}

func (c *referenceCheck) next(f *File) error {
	if f.Location == "" {
		return nil
	}
	if c.last >= len(c.want) || c.want[c.last].Location != f.Location {
		if c.last = slices.IndexFunc(c.want, func(r Reference) bool { return r.Location == f.Location }); c.last < 0 {
			c.last = 0
			return fmt.Errorf("the file %s lies in the location %q, which the head does not name", f.Key(), f.Location)
		}
	}
	c.got[c.last].Files++
	c.got[c.last].Bytes += f.Size
	return nil
}

func (c *referenceCheck) end() error {
	for i, w := range c.want {
		if g := c.got[i]; g.Files != w.Files || g.Bytes != w.Bytes {
			return fmt.Errorf("the header counts %d files of %d bytes in the location %s, the list has %d of %d", w.Files, w.Bytes, w.Location, g.Files, g.Bytes)
		}
	}
	return nil
}
