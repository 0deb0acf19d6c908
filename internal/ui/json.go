package ui

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteDocument writes one indented JSON document whose first field is its
// schema, as "hbackup.list/1". The value must encode as an object.
func WriteDocument(w io.Writer, schema string, value any) error {
	raw, err := object(value, "schema", schema)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// WriteLine writes one JSON object as a line of a stream: the first field is its
// type; the last line of a stream, "summary" or "error", carries the schema too.
func WriteLine(w io.Writer, typ, schema string, value any) error {
	raw, err := object(value, "type", typ, "schema", schema)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// object encodes the value and puts fields in front of it; empty ones are left out.
func object(value any, fields ...string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	rest := bytes.TrimSpace(b.Bytes())[1:] // without the brace
	out := []byte{'{'}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, _ := json.Marshal(fields[i])
		text, _ := json.Marshal(fields[i+1])
		out = append(append(append(out, name...), ':'), text...)
	}
	if len(out) > 1 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...), nil
}
