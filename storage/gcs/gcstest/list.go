package gcstest

import (
	"slices"
	"strings"
)

// page is one answer to a listing.
type page struct {
	c                      *call
	prefix, delimiter, end string
	after                  string // the name, or the folder, behind which it goes on
	limit                  int

	items   []map[string]any
	folders []string
	more    bool
}

// fill takes names from the bucket until the page is full. The lock is held.
func (p *page) fill(b *bucket) {
	i, _ := slices.BinarySearch(b.names, max(p.prefix, p.c.get("startOffset"), p.after))
	for _, name := range b.names[i:] {
		folder := p.folder(name)
		switch {
		case p.end != "" && name >= p.end || !strings.HasPrefix(name, p.prefix):
			return
		case name == p.after, folder != "" && folder <= p.after:
			continue
		case len(p.items)+len(p.folders) == p.limit:
			p.more = true
			return
		case folder != "":
			p.folders = append(p.folders, folder)
			p.after = folder
		default:
			p.items = append(p.items, b.objects[name].resource())
			p.after = name
		}
	}
}

// folder gives what a delimiter makes of a name, "" if the name stands for itself.
func (p *page) folder(name string) string {
	if p.delimiter == "" || !strings.HasPrefix(name, p.prefix) {
		return ""
	}
	i := strings.Index(name[len(p.prefix):], p.delimiter)
	if i < 0 {
		return ""
	}
	return name[:len(p.prefix)+i+len(p.delimiter)]
}
