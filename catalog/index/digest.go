package index

import (
	"fmt"
	"io"
	"os"
	"reflect"

	"hbackup/catalog"
	"hbackup/storage"
)

// formatLine is what the file beside the index holds: format, the form of what is
// remembered, size and digest.
const formatLine = "hbackup index 2 of %s: %d bytes, %s\n"

// form stands for the fields of a run. Another version of hbackup, which knows of
// more of them or of fewer, makes the index anew.
var form = storage.DigestOf([]byte(fieldsOf(reflect.TypeFor[catalog.Run]())))

func fieldsOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " of " + fieldsOf(t.Elem())
	case reflect.Struct:
		s := t.String() + "{"
		for i := range t.NumField() {
			f := t.Field(i)
			s += f.Name + " " + string(f.Tag) + " " + fieldsOf(f.Type) + ";"
		}
		return s + "}"
	}
	return t.String()
}

func digestFile(index string) string { return index + ".sum" }

// lineOf reads the index whole.
func lineOf(index string) (string, error) {
	f, err := os.Open(index)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := storage.NewHash()
	n, err := io.CopyBuffer(h, f, make([]byte, 128<<10))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(formatLine, form, n, storage.Digest(h.Sum64())), nil
}

// checkDigest fails when the index is not what was written last.
func checkDigest(index string) error {
	want, err := os.ReadFile(digestFile(index))
	if err != nil {
		return fmt.Errorf("its digest cannot be read: %v", err)
	}
	got, err := lineOf(index)
	if err != nil {
		return err
	}
	if got != string(want) {
		return fmt.Errorf("its digest or its format is another one")
	}
	return nil
}

// writeDigest is called with the index locked. It is a cache's digest: losing it in
// a crash loses the index, so nothing is synced.
func writeDigest(index string) error {
	line, err := lineOf(index)
	if err != nil {
		return err
	}
	tmp := digestFile(index) + ".new"
	if err := os.WriteFile(tmp, []byte(line), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, digestFile(index))
}
