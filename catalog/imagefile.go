package catalog

import (
	"cmp"
	"fmt"
	"strings"

	"hbackup/storage"
)

func (f *File) validate() error {
	if err := f.Table.Validate(); err != nil {
		return err
	}
	if err := f.Region.Validate(); err != nil {
		return err
	}
	if err := f.Family.Validate(); err != nil {
		return err
	}
	if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\x00") || len(f.Name) > storage.MaxSegmentBytes {
		return fmt.Errorf("%q is no file name", f.Name)
	}
	if f.Size < 0 || f.Cells < -1 {
		return fmt.Errorf("the file %s has size %d and %d cells", f.Name, f.Size, f.Cells)
	}
	return f.Key().Validate()
}

// CompareFiles orders files as their keys are ordered, without building the keys.
// It is the order of Image.Files, so the one for every search in them.
func CompareFiles(a, b File) int {
	return cmp.Or(compareSegment(a.Table.Namespace, b.Table.Namespace), compareSegment(a.Table.Qualifier, b.Table.Qualifier),
		cmp.Compare(a.Region, b.Region), compareSegment(string(a.Family), string(b.Family)), cmp.Compare(a.Name, b.Name))
}

// before reports whether f comes before g.
func (f *File) before(g *File) bool {
	if sameGroup(f, g) {
		return f.Name < g.Name
	}
	return CompareFiles(*f, *g) < 0
}

func sameGroup(a, b *File) bool {
	return a.Table == b.Table && a.Region == b.Region && a.Family == b.Family
}

// compareSegment compares path segments that more segments follow: "t/" comes
// behind "t-1/", as '/' is greater than '-'.
func compareSegment(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 || len(a) == len(b) {
		return c
	}
	if len(a) > n {
		return cmp.Compare(a[n], '/')
	}
	return cmp.Compare('/', b[n])
}
