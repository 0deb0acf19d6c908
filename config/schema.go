package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// shape is what a key holds.
type shape int

const (
	shapeStruct shape = iota // fixed keys below it
	shapeNames               // names chosen by the operator, each with the same keys below it
	shapeLeaf                // one value
	shapeList                // a list of values
	shapeSecret              // a reference to a secret: the keys env and file
)

// node is one key of the schema.
type node struct {
	key   string
	shape shape
	typ   reflect.Type
	field int               // index in the parent's struct
	tag   reflect.StructTag // of the field
	below []*node           // of structs and secrets, in the order of the fields
	entry *node             // of names: what each name holds
	byKey map[string]*node  // the same as below
}

// placeholder stands for a name in documentation and hints.
const placeholder = "NAME"

// schema gives the root of the tree that the type Config describes.
var schema = sync.OnceValue(func() *node { return describe(reflect.TypeFor[Config](), "", "") })

func describe(t reflect.Type, key string, tag reflect.StructTag) *node {
	n := &node{key: key, typ: t, tag: tag}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		n.shape = shapeLeaf
	case t.Kind() == reflect.Pointer:
		return describe(t.Elem(), key, tag)
	case t.Kind() == reflect.Map:
		n.shape = shapeNames
		n.entry = describe(t.Elem(), placeholder, "")
	case t.Kind() == reflect.Slice:
		n.shape = shapeList
	case t.Kind() == reflect.Struct:
		n.shape = shapeStruct
		if t == reflect.TypeFor[Secret]() {
			n.shape = shapeSecret
		}
		n.byKey = map[string]*node{}
		for i := range t.NumField() {
			f := t.Field(i)
			name := f.Tag.Get("key")
			if !f.IsExported() || name == "-" {
				continue
			}
			if name == "" {
				panic(fmt.Sprintf("config: field %s.%s has no key", t, f.Name))
			}
			child := describe(f.Type, name, f.Tag)
			child.field = i
			n.below = append(n.below, child)
			n.byKey[name] = child
		}
	default:
		n.shape = shapeLeaf
	}
	return n
}

// child gives what lies below n under the segment, or nil.
func (n *node) child(segment string) *node {
	switch n.shape {
	case shapeNames:
		return n.entry
	case shapeStruct, shapeSecret:
		return n.byKey[segment]
	}
	return nil
}

// keys gives the fixed keys below n.
func (n *node) keys() []string {
	keys := make([]string, len(n.below))
	for i, c := range n.below {
		keys[i] = c.key
	}
	return keys
}

// appliesTo reports whether the key means anything to locations of the scheme.
func (n *node) appliesTo(scheme string) bool {
	only := n.tag.Get("only")
	return only == "" || slices.Contains(strings.Split(only, ","), scheme)
}

// schemes names those that the key applies to, for messages.
func (n *node) schemes() string {
	return strings.ReplaceAll(n.tag.Get("only"), ",", ":// and ") + "://"
}

// isValue reports whether the key is set as a whole: it has no keys below it.
func (n *node) isValue() bool { return n.shape == shapeLeaf || n.shape == shapeList }

// eachPattern calls f with every key of the schema and its path, in which
// placeholder stands for names. A secret is visited itself and not below.
func (n *node) eachPattern(path string, f func(path string, n *node)) {
	if path != "" {
		f(path, n)
	}
	switch n.shape {
	case shapeNames:
		n.entry.eachPattern(join(path, placeholder), f)
	case shapeStruct:
		for _, c := range n.below {
			c.eachPattern(join(path, c.key), f)
		}
	}
}

// whereElse names the section that has the key, for people who put a right key in
// the wrong place; "" when there is none.
func whereElse(key string) string {
	found := ""
	schema().eachPattern("", func(path string, n *node) {
		if n.key != key || found != "" {
			return
		}
		if found = strings.TrimSuffix(path, "."+key); found == path {
			found = "the top level"
		}
	})
	return found
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
