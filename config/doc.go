package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"hbackup"
)

// Markdown gives the table of all keys for the documentation. NAME stands for
// the name of a cluster, location or set.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|\n")
	schema().eachPattern("", func(path string, n *node) {
		if n.key == placeholder {
			return
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", path, n.typeWords(), n.defaultWords(), n.docWords())
	})
	return b.String()
}

// typeWords names the type of a key for people.
func (n *node) typeWords() string {
	switch n.shape {
	case shapeStruct:
		return "section"
	case shapeNames:
		return "section by name"
	case shapeSecret:
		return "`{env: NAME}` or `{file: PATH}`"
	case shapeList:
		return "list of " + plural(typeName(n.typ.Elem()))
	}
	return typeName(n.typ)
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[Size]():
		return "size"
	case reflect.TypeFor[Rate]():
		return "rate"
	case reflect.TypeFor[URL](), reflect.TypeFor[Endpoint]():
		return "URL"
	case reflect.TypeFor[HostPort]():
		return "address"
	case reflect.TypeFor[LocationName]():
		return "location name"
	case reflect.TypeFor[hbackup.TablePattern]():
		return "pattern"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "`true` or `false`"
	case reflect.Int:
		return "number"
	}
	return "text"
}

func (n *node) defaultWords() string {
	if n.tag.Get("required") != "" {
		return "required"
	}
	if d := n.tag.Get("default"); d != "" {
		return "`" + d + "`"
	}
	return n.tag.Get("defaultdoc")
}

func (n *node) docWords() string {
	doc := n.tag.Get("doc")
	if e := n.tag.Get("enum"); e != "" {
		doc += " One of `" + strings.ReplaceAll(e, ",", "`, `") + "`."
	}
	low, high := n.tag.Get("min"), n.tag.Get("max")
	if low != "" && high != "" {
		doc += fmt.Sprintf(" From `%s` to `%s`.", low, high)
	}
	if p := n.tag.Get("port"); p != "" {
		doc += " Port " + p + " unless written."
	}
	if e := n.tag.Get("example"); e != "" {
		doc += " Example: `" + e + "`."
	}
	return doc
}

func plural(word string) string {
	if strings.HasSuffix(word, "s") {
		return word + "es"
	}
	return word + "s"
}
