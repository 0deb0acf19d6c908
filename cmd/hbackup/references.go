package main

import (
	"slices"
	"strings"

	"hbackup/catalog"
	"hbackup/internal/ui"
)

// references adds up what all images of the run have in other locations.
func (d runDocument) references() (all []catalog.Reference) {
	for _, t := range d.Tables {
		for _, r := range t.References {
			at, found := slices.BinarySearchFunc(all, r.Location, func(r catalog.Reference, id string) int { return strings.Compare(r.Location, id) })
			if !found {
				all = slices.Insert(all, at, catalog.Reference{Location: r.Location, Name: r.Name})
			}
			all[at].Files += r.Files
			all[at].Bytes += r.Bytes
		}
	}
	return all
}

// remarks are the lines of a run's head that few runs have: what lies in other
// locations, and what was put in order.
func (d runDocument) remarks(t *ui.Table) {
	for _, r := range d.references() {
		t.Row("lies elsewhere", ui.Bytes(r.Bytes)+" in "+ui.Plural(r.Files, "file", "files")+", in "+string(r.Name)+" (location id "+r.Location+")")
	}
	replaced := 0
	for _, td := range d.Tables {
		replaced += td.ReplacedFiles
	}
	if replaced > 0 {
		t.Row("replaced", ui.Plural(replaced, "file", "files")+" that the location held damaged; hbackup verify shows whether others are")
	}
}
