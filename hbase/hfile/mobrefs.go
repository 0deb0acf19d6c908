package hfile

import (
	"fmt"
	"strings"

	"hbackup"
)

// MOBRef is a MOB file that cells of an HFile name, and the table whose MOB
// directory it belongs to, which in a clone is not the HFile's own table.
type MOBRef struct {
	Table hbackup.TableName
	File  string
}

// noMOBRefs is what a flush or compaction writes when no cell names a MOB file
// (HStoreFile.NULL_VALUE).
const noMOBRefs = "\x00"

// MOBRefs reads MOB_FILE_REFS: "table/file,file//table/file", one zero byte, empty
// or absent when no cell of the file names a MOB file. The form is that of HBase's
// MobUtils.
func (i FileInfo) MOBRefs() ([]MOBRef, error) {
	text := string(i[KeyMobFileRefs])
	if text == "" || text == noMOBRefs {
		return nil, nil
	}
	var refs []MOBRef
	for part := range strings.SplitSeq(text, "//") {
		name, files, ok := strings.Cut(part, "/")
		table, err := hbackup.ParseTableName(name)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s holds %.200q, which names no table and files", KeyMobFileRefs, part)
		}
		for file := range strings.SplitSeq(files, ",") {
			if file == "" || strings.Contains(file, "/") {
				return nil, fmt.Errorf("%s holds the file name %.200q", KeyMobFileRefs, file)
			}
			refs = append(refs, MOBRef{table, file})
		}
	}
	return refs, nil
}
