package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// resolve lists every key of the finished configuration with its origin.
func (l *loader) resolve(cfg *Config) {
	l.collect(schema(), reflect.ValueOf(cfg).Elem(), "")
	cfg.values = l.values
}

func (l *loader) collect(n *node, v reflect.Value, path string) {
	switch n.shape {
	case shapeNames:
		for _, name := range l.names[path] {
			key := reflect.New(n.typ.Key()).Elem()
			key.SetString(name)
			l.collect(n.entry, v.MapIndex(key).Elem(), join(path, name))
		}
	case shapeStruct:
		loc, isLocation := v.Interface().(Location)
		for _, c := range n.below {
			if isLocation && !c.appliesTo(loc.URL.Scheme) {
				continue // the key means nothing here
			}
			l.collect(c, v.Field(c.field), join(path, c.key))
		}
	case shapeSecret:
		secret := v.Interface().(Secret)
		value := Value{Path: path, Text: secret.String(), Origin: Origin{Source: SourceDefault}, Set: secret.IsSet(), Secret: true}
		for _, key := range n.keys() {
			if s, ok := l.settings[join(path, key)]; ok {
				value.Origin = s.origin
			}
		}
		l.values = append(l.values, value)
	default:
		value := Value{Path: path, Text: textOf(v), Origin: Origin{Source: SourceDefault}}
		if s, ok := l.settings[path]; ok {
			value.Origin, value.Set = s.origin, true
		}
		_, hasDefault := n.tag.Lookup("default")
		if v.IsZero() && !hasDefault && !value.Set {
			value.Text = "" // and not 0
		}
		value.Set = value.Set || hasDefault || value.Text != ""
		l.values = append(l.values, value)
	}
}

// textOf writes a value as the file would have it.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = textOf(v.Index(i))
		}
		return strings.Join(items, ", ")
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v.Interface())
}
