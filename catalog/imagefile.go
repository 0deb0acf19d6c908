package catalog

import (
	"cmp"
	"fmt"
	"strings"

	"hbackup"
	"hbackup/hbase/snapshot"
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
func CompareFiles(a, b File) int { return compareFiles(&a, &b) }

func compareFiles(a, b *File) int {
	return comparePaths(&a.Table, &b.Table, a.Region, b.Region, a.Family, b.Family, a.Name, b.Name)
}

// CompareTargets orders what a snapshot names in the same way.
func CompareTargets(a, b *snapshot.Target) int {
	return comparePaths(&a.Table, &b.Table, a.Region, b.Region, a.Family, b.Family, a.File, b.File)
}

// CompareFile compares a file of an image with one that a snapshot names.
func CompareFile(f *File, t *snapshot.Target) int {
	return comparePaths(&f.Table, &t.Table, f.Region, t.Region, f.Family, t.Family, f.Name, t.File)
}

// CompareKey compares the key of an object with that of a file that a snapshot names.
func CompareKey(key storage.Key, t *snapshot.Target) int {
	rest := string(key)
	for _, part := range [...]string{archivePrefix, t.Table.Namespace, "/", t.Table.Qualifier, "/", string(t.Region), "/", string(t.Family), "/", t.File} {
		n := min(len(rest), len(part))
		if c := cmp.Compare(rest[:n], part[:n]); c != 0 {
			return c
		}
		if n < len(part) {
			return -1
		}
		rest = rest[n:]
	}
	return min(len(rest), 1)
}

func comparePaths(at, bt *hbackup.TableName, ar, br hbackup.EncodedRegion, af, bf hbackup.Family, an, bn string) int {
	if at.Namespace != bt.Namespace {
		return compareSegment(at.Namespace, bt.Namespace)
	}
	if at.Qualifier != bt.Qualifier {
		return compareSegment(at.Qualifier, bt.Qualifier)
	}
	if ar != br {
		return cmp.Compare(ar, br)
	}
	if af != bf {
		return compareSegment(string(af), string(bf))
	}
	return cmp.Compare(an, bn)
}

// before reports whether f comes before g.
func (f *File) before(g *File) bool {
	if sameGroup(f, g) {
		return f.Name < g.Name
	}
	return compareFiles(f, g) < 0
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
