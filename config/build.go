package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"hbackup/internal/nearest"
)

// Value is one key of the resolved configuration.
type Value struct {
	Path   string // "clusters.prod.target"
	Text   string // as it would be written; of a secret, where it is
	Origin Origin
	Set    bool // false when there is neither a setting nor a default
	Secret bool
}

// Values gives every key with its value and its origin, in the order of the
// struct's fields; names are in the order of the file.
func (c *Config) Values() []Value { return c.values }

// build fills v, which is the value of n, from the settings and the defaults.
func (l *loader) build(n *node, v reflect.Value, path string) {
	switch n.shape {
	case shapeNames:
		v.Set(reflect.MakeMap(v.Type()))
		for _, name := range l.names[path] {
			entry := reflect.New(n.typ.Elem().Elem())
			l.build(n.entry, entry.Elem(), join(path, name))
			key := reflect.New(n.typ.Key()).Elem()
			key.SetString(name)
			if f := entry.Elem().FieldByName("Name"); f.IsValid() {
				f.SetString(name)
			}
			v.SetMapIndex(key, entry)
		}
	case shapeStruct, shapeSecret:
		for _, c := range n.below {
			l.build(c, v.Field(c.field), join(path, c.key))
		}
	default:
		l.value(n, v, path)
	}
}

// value fills one key.
func (l *loader) value(n *node, v reflect.Value, path string) {
	s, ok := l.settings[path]
	if !ok {
		def, hasDefault := n.tag.Lookup("default")
		if !hasDefault {
			if n.tag.Get("required") != "" {
				l.missing(n, path)
			}
			return
		}
		s = setting{path: path, node: n, text: []string{def}, origin: Origin{Source: SourceDefault}}
	}
	if n.shape == shapeLeaf {
		if s.text[0] == "" && n.tag.Get("required") != "" {
			l.add(s.origin, path, "", "the key is required and must not be empty")
			return
		}
		if err := parseInto(v, s.text[0], n.tag); err != nil {
			l.addErr(s.origin, path, err)
		}
		return
	}
	list := reflect.MakeSlice(v.Type(), 0, len(s.text))
	for _, item := range s.text {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := parseInto(e, item, n.tag); err != nil {
			l.addErr(s.origin, path, err)
			return
		}
		for i := range list.Len() {
			if list.Index(i).Equal(e) {
				l.add(s.origin, path, "", "%s is in the list twice", item)
				return
			}
		}
		list = reflect.Append(list, e)
	}
	if list.Len() > 0 {
		v.Set(list)
	}
}

// missing reports a required key, unless there was something about it already.
func (l *loader) missing(n *node, path string) {
	if l.excused[path] || slices.ContainsFunc(l.list, func(p Problem) bool { return p.Key == path }) {
		return
	}
	hint := ""
	if ex := n.tag.Get("example"); ex != "" {
		hint = "for example " + n.key + ": " + ex
	} else if path == "version" {
		hint = "add the line version: " + strconv.Itoa(Version)
	}
	l.add(l.originOf(path), path, hint, "the key is missing")
}

// parseInto reads the text of one value by the type of v and the limits in the tag.
func parseInto(v reflect.Value, text string, tag reflect.StructTag) error {
	if !textIsSafe(text) {
		return fmt.Errorf("the value %q holds a control character", text)
	}
	if enum := tag.Get("enum"); enum != "" {
		allowed := strings.Split(enum, ",")
		for _, a := range allowed {
			if a == text {
				v.SetString(text)
				return nil
			}
		}
		if near := nearest.To(text, allowed); near != "" {
			return hinted("did you mean "+near+"?", "%q is not one of %s", text, strings.Join(allowed, ", "))
		}
		return fmt.Errorf("%q is not one of %s", text, strings.Join(allowed, ", "))
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text == "" {
			v.SetZero()
			return nil
		}
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return err
		}
		return checkLimits(v, text, tag)
	}
	switch {
	case v.Type() == reflect.TypeFor[HostPort]():
		hp, err := parseHostPort(text, tag.Get("port"))
		if err != nil {
			return err
		}
		v.SetString(string(hp))
		return nil
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
		return checkLimits(v, text, tag)
	case v.Kind() == reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(int64(i))
		return checkLimits(v, text, tag)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return hinted("write true or false", "%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
		return nil
	}
	v.SetString(text)
	if named, ok := v.Interface().(interface{ Validate() error }); ok && text != "" {
		return named.Validate()
	}
	return nil
}

// checkLimits compares a number, size or duration with min and max of the tag.
func checkLimits(v reflect.Value, text string, tag reflect.StructTag) error {
	for _, limit := range []string{"min", "max"} {
		bound, ok := tag.Lookup(limit)
		if !ok {
			continue
		}
		b := reflect.New(v.Type()).Elem()
		if err := parseInto(b, bound, ""); err != nil {
			panic("config: bad limit in a tag: " + err.Error()) // a test reads every tag
		}
		if limit == "min" && v.Int() < b.Int() {
			return fmt.Errorf("%s is less than the least allowed value, %s", text, bound)
		}
		if limit == "max" && v.Int() > b.Int() {
			return fmt.Errorf("%s is more than the largest allowed value, %s", text, bound)
		}
	}
	return nil
}

func textIsSafe(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
