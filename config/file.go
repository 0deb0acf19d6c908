package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hbackup"
	"hbackup/internal/nearest"
)

// maxFile bounds what is read as a configuration.
const maxFile = 1 << 20

// DefaultPaths are the places that are looked at, in order, when neither a flag
// nor HBACKUP_CONFIG names a file.
var DefaultPaths = []string{"hbackup.yaml", "/etc/hbackup/hbackup.yaml"}

// findFile gives the absolute path of the file to read.
func findFile(src LoadOptions) (string, error) {
	path := src.Path
	if path == "" {
		path = src.env(envConfig)
	}
	if path != "" {
		return filepath.Abs(path)
	}
	for _, p := range src.searchPaths() {
		if _, err := os.Stat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return filepath.Abs(p)
		}
	}
	return "", hbackup.Errorf("read configuration", "", hbackup.KindUsage,
		"no file found; looked for %s", strings.Join(src.searchPaths(), ", ")).
		WithHint("name one with --config FILE or %s", envConfig)
}

func readFile(path string) ([]byte, error) {
	fail := func(err error) error {
		return hbackup.E("read configuration", path, hbackup.KindUsage, plainPathError(err))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fail(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fail(err)
	}
	if len(text) > maxFile {
		return nil, hbackup.Errorf("read configuration", path, hbackup.KindUsage, "the file is larger than %s", Size(maxFile))
	}
	return text, nil
}

// yamlLine finds the line in the messages of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// parseFile reads the YAML text into settings. It reports every structural
// fault: unknown and repeated keys, wrong shapes, missing values. It gives false
// when nothing could be read.
func (l *loader) parseFile(file string, text []byte) bool {
	origin := Origin{Source: SourceFile, File: file}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		msg := err.Error()
		if m := yamlLine.FindStringSubmatch(msg); m != nil {
			origin.Line, _ = strconv.Atoi(m[1])
			msg = msg[len(m[0]):]
		}
		if msg == "EOF" {
			l.add(origin, "", "see docs/configuration.md for a first one", "the file is empty")
			return false
		}
		l.add(origin, "", "", "not valid YAML: %s", oneLine(strings.TrimPrefix(msg, "yaml: ")))
		return false
	}
	if err := dec.Decode(new(yaml.Node)); err == nil {
		l.add(origin, "", "keep one and take the --- lines out", "the file holds more than one YAML document")
		return false
	}
	if len(doc.Content) != 1 || isNull(doc.Content[0]) {
		l.add(origin, "", "see docs/configuration.md for a first one", "the file is empty")
		return false
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		l.add(Origin{Source: SourceFile, File: file, Line: root.Line}, "", "", "keys with values are expected here, not %s", kindWords(root))
		return false
	}
	(&fileReader{loader: l, file: file}).walk(schema(), root, "")
	return true
}

// fileReader walks the schema and the parsed file side by side.
type fileReader struct {
	*loader
	file string
}

func (r *fileReader) at(y *yaml.Node) Origin {
	return Origin{Source: SourceFile, File: r.file, Line: y.Line}
}

// walk reads y as the value of n. Its depth is bounded by that of the schema,
// and no key is read twice, so aliases cannot make it long.
func (r *fileReader) walk(n *node, y *yaml.Node, path string) {
	at := r.at(y)
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	switch n.shape {
	case shapeLeaf:
		switch {
		case isNull(y):
			r.add(at, path, "leave the key out to use its default", "the key has no value")
		case y.Kind != yaml.ScalarNode:
			r.add(at, path, "", "one value is expected, not %s", kindWords(y))
		default:
			r.set(setting{path: path, node: n, text: []string{y.Value}, origin: at})
		}
	case shapeList:
		r.list(n, y, path, at)
	case shapeSecret:
		if y.Kind == yaml.ScalarNode && !isNull(y) {
			// The value is a secret and is not repeated.
			r.add(at, path, inlineSecretHint, "a secret must not stand in the configuration")
			return
		}
		r.mapping(n, y, path, at)
	default:
		r.mapping(n, y, path, at)
	}
}

const inlineSecretHint = "refer to it: {env: NAME} or {file: /path}"

func (r *fileReader) list(n *node, y *yaml.Node, path string, at Origin) {
	if y.Kind == yaml.ScalarNode && !isNull(y) {
		r.set(setting{path: path, node: n, text: splitList(y.Value), origin: at})
		return
	}
	if y.Kind != yaml.SequenceNode {
		r.add(at, path, "write it as [a, b]", "a list is expected, not %s", kindWords(y))
		return
	}
	items := make([]string, 0, len(y.Content))
	for _, item := range y.Content {
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		if item.Kind != yaml.ScalarNode || isNull(item) {
			r.add(r.at(item), path, "write it as [a, b]", "a list of single values is expected, not of %s", kindWords(item))
			return
		}
		items = append(items, item.Value)
	}
	r.set(setting{path: path, node: n, text: items, origin: at})
}

func (r *fileReader) mapping(n *node, y *yaml.Node, path string, at Origin) {
	if isNull(y) { // a section of which every key is commented out
		r.present(path, at)
		return
	}
	if y.Kind != yaml.MappingNode {
		r.add(at, path, "", "keys with values are expected here, not %s", kindWords(y))
		return
	}
	r.present(path, at)
	seen := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		here := r.at(k)
		if k.Kind != yaml.ScalarNode || isNull(k) {
			r.add(here, path, "", "a key must be a plain word, not %s", kindWords(k))
			continue
		}
		key := join(path, k.Value)
		if k.Tag == "!!merge" {
			r.add(here, path, "write the keys out, or use an alias for a whole section", "merge keys (<<) are not supported")
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.add(here, key, "keep one of the two", "the key is there twice, first in line %d", first)
			continue
		}
		seen[k.Value] = k.Line
		child := n.child(k.Value)
		if child == nil {
			r.excuse(path, n, k.Value)
			r.add(here, "", r.unknownHint(n, k.Value), "unknown key %s", printable(key))
			continue
		}
		if n.shape == shapeNames {
			if err := r.addName(n, path, k.Value, here); err != nil {
				r.addErr(here, path, err)
				continue
			}
		}
		r.walk(child, v, key)
	}
}

// unknownHint gives the nearest known key, or where the key belongs, or what is known.
func (l *loader) unknownHint(n *node, key string) string {
	if near := nearest.To(key, n.keys()); near != "" {
		return "did you mean " + near + "?"
	}
	if place := whereElse(key); place != "" {
		return key + " is a key of " + place
	}
	return "known here: " + strings.Join(n.keys(), ", ")
}

// excuse keeps the key that was probably meant from being called missing too.
func (l *loader) excuse(path string, n *node, key string) {
	if near := nearest.To(key, n.keys()); near != "" {
		l.excused[join(path, near)] = true
	}
}

// isNull takes the tag as the file has it: a node's own ShortTag can fail on
// tags that do not fit their text.
func isNull(y *yaml.Node) bool { return y.Kind == yaml.ScalarNode && y.Tag == "!!null" }

func kindWords(y *yaml.Node) string {
	switch {
	case isNull(y):
		return "nothing"
	case y.Kind == yaml.MappingNode:
		return "keys with values"
	case y.Kind == yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

func splitList(s string) []string {
	items := []string{}
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// printable keeps control characters of a file out of messages.
func printable(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return strconv.Quote(s)
	}
	return s
}
