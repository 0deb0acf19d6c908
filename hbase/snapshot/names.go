package snapshot

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"hbackup"
)

// FileName is the parsed name of a store file as a manifest or a store directory
// has it. The forms, which can be combined as shown:
//
//	<hex>                             an HFile
//	<hex>_SeqId_<n>_                  a bulk-loaded HFile
//	<hex>_del                         a delete marker file of old MOB compactions
//	<md5><yyyyMMdd><uuid>_<region>    a MOB file
//	[<ns>=]<table>=<region>-<file>    an HFileLink: the file belongs to another table or region
//	<file or link>.<parent region>    a reference: half of a file, or all of it after a merge
//
// The zero value is no name.
type FileName struct {
	// Table and Region say where a link leads to; both are zero in other names.
	Table  hbackup.TableName
	Region hbackup.EncodedRegion
	// File is the name of the file that holds the bytes.
	File string
	// Parent is the region that a reference speaks of; "" in other names.
	Parent hbackup.EncodedRegion
}

const (
	encodedLen     = 32                          // hex digits of an encoded region name
	mobStemLen     = 32 + 8 + 32                 // start key's MD5, date, UUID
	mobNameLen     = mobStemLen + 1 + encodedLen // and the region
	maxFileNameLen = 1024                        // far above the 255 bytes that HDFS allows
	seqIDMark      = "_SeqId_"
	delSuffix      = "_del"
)

// ParseFileName reads a name by the grammar of FileName. A name that parses is
// one path segment and cannot lead out of its directory. The parts share the
// memory of s.
func ParseFileName(s string) (FileName, error) {
	if len(s) > maxFileNameLen {
		return FileName{}, fmt.Errorf("the store file name is %d bytes long", len(s))
	}
	var n FileName
	rest := s
	if i := strings.LastIndexByte(s, '='); i >= 0 {
		n.Table = hbackup.TableName{Namespace: hbackup.DefaultNamespace, Qualifier: s[:i]}
		if ns, q, found := strings.Cut(s[:i], "="); found {
			n.Table = hbackup.TableName{Namespace: ns, Qualifier: q}
			if ns == hbackup.DefaultNamespace {
				return FileName{}, fmt.Errorf("store file name %q: the default name space is never written in a link", s)
			}
		}
		if err := n.Table.Validate(); err != nil {
			return FileName{}, fmt.Errorf("store file name %q: %w", s, err)
		}
		rest = s[i+1:]
		if len(rest) <= encodedLen || rest[encodedLen] != '-' || !isHex(rest[:encodedLen]) {
			return FileName{}, fmt.Errorf("store file name %q: no encoded region name after %q", s, s[:i+1])
		}
		n.Region = hbackup.EncodedRegion(rest[:encodedLen])
		rest = rest[encodedLen+1:]
	}
	if i := strings.IndexByte(rest, '.'); i >= 0 {
		parent := rest[i+1:]
		if len(parent) != encodedLen || !isHex(parent) {
			return FileName{}, fmt.Errorf("store file name %q: no encoded region name after the period", s)
		}
		n.Parent = hbackup.EncodedRegion(parent)
		rest = rest[:i]
	}
	n.File = rest
	if !isFile(rest) || n.Parent != "" && n.IsMOB() {
		return FileName{}, fmt.Errorf("store file name %q is of no form that HBase writes", s)
	}
	return n, nil
}

// String gives the name back as it was parsed.
func (n FileName) String() string {
	s := n.File
	if n.IsLink() {
		s = LinkName(n.Table, n.Region, n.File)
	}
	if n.IsReference() {
		s += "." + string(n.Parent)
	}
	return s
}

// LinkName gives the name of an HFileLink to a file of another table or region.
func LinkName(table hbackup.TableName, region hbackup.EncodedRegion, file string) string {
	if table.Namespace != hbackup.DefaultNamespace {
		return table.Namespace + "=" + table.Qualifier + "=" + string(region) + "-" + file
	}
	return table.Qualifier + "=" + string(region) + "-" + file
}

// IsLink reports whether the name leads to a file of another table or region.
func (n FileName) IsLink() bool { return n.Region != "" }

// IsReference reports whether the name stands for a part of a parent's file.
func (n FileName) IsReference() bool { return n.Parent != "" }

// IsMOB reports whether File has the form of a MOB file's name.
func (n FileName) IsMOB() bool { return len(n.File) == mobNameLen && n.File[mobStemLen] == '_' }

// IsDel reports whether File holds the delete markers of an old MOB compaction.
func (n FileName) IsDel() bool { return strings.HasSuffix(n.File, delSuffix) }

// SeqID gives the sequence id that a bulk load put into the name. HBase orders
// the file by it, so it must survive any renaming.
func (n FileName) SeqID() (int64, bool) {
	_, digits, found := strings.Cut(n.File, seqIDMark)
	if !found {
		return 0, false
	}
	id, err := strconv.ParseInt(strings.TrimSuffix(digits, "_"), 10, 64)
	return id, err == nil
}

// seqIDSuffix gives "_SeqId_<n>_" of a bulk-loaded file, as written, else "".
func (n FileName) seqIDSuffix() string {
	if i := strings.Index(n.File, seqIDMark); i >= 0 {
		return n.File[i:]
	}
	return ""
}

// isFile reports whether s is the name of a file that holds bytes itself.
func isFile(s string) bool {
	i := 0
	for i < len(s) && hexDigit[s[i]] {
		i++
	}
	if i == 0 {
		return false
	}
	tail := s[i:]
	switch {
	case tail == "" || tail == delSuffix:
		return true
	case strings.HasPrefix(tail, seqIDMark):
		digits, found := strings.CutSuffix(tail[len(seqIDMark):], "_")
		return found && isInt64(digits)
	case len(s) == mobNameLen && i == mobStemLen:
		return tail[0] == '_' && isHex(tail[1:]) && isDigits(s[32:40])
	}
	return false
}

var hexDigit = func() (t [256]bool) {
	for _, c := range "0123456789abcdef" {
		t[c] = true
	}
	return t
}()

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if !hexDigit[s[i]] {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isInt64 reports whether s is written in digits and fits into Java's long.
func isInt64(s string) bool {
	if !isDigits(s) || len(s) > 64 {
		return false
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return err == nil && v <= math.MaxInt64
}
