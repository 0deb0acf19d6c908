package config

import (
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// LoadOptions say where the configuration comes from. The zero value reads the
// default places and the process's environment.
type LoadOptions struct {
	Path        string                 // the file; "" means HBACKUP_CONFIG, then SearchPaths
	SearchPaths []string               // nil means DefaultPaths
	Environ     []string               // "NAME=value"; nil means os.Environ
	Set         []Override             // from flags; the last one of a key wins
	OSUser      func() (string, error) // name of the operating system's user; nil means ask it
}

// Override is a value from the command line.
type Override struct {
	Key   string // path of the key, as clusters.prod.target
	Value string
	Flag  string // the flag as it was written, for messages: "--set clusters.prod.target"
}

func (o LoadOptions) environ() []string {
	if o.Environ != nil {
		return o.Environ
	}
	return os.Environ()
}

// env gives a variable; an empty one counts as not set.
func (o LoadOptions) env(name string) string {
	value := ""
	for _, kv := range o.environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

func (o LoadOptions) searchPaths() []string {
	if o.SearchPaths != nil {
		return o.SearchPaths
	}
	return DefaultPaths
}

func (o LoadOptions) osUser() (string, error) {
	if o.OSUser != nil {
		return o.OSUser()
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// Load reads the configuration: defaults, then the file, then the environment,
// then flags; the later one wins. Faults in it come back as one *Error that
// holds all of them, each of KindUsage.
func Load(opts LoadOptions) (*Config, error) {
	file, err := findFile(opts)
	if err != nil {
		return nil, err
	}
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return parse(file, text, opts)
}

// parse is Load for a file that was read already.
func parse(file string, text []byte, opts LoadOptions) (*Config, error) {
	l := &loader{
		opts:     opts,
		settings: map[string]setting{},
		sections: map[string]Origin{"": {Source: SourceFile, File: file}},
		names:    map[string][]string{},
		excused:  map[string]bool{},
	}
	if !l.parseFile(file, text) {
		return nil, &Error{Problems: l.list}
	}
	l.applyFlags(func(o Override) bool { return l.declaresName(o.Key) })
	l.applyEnv()
	l.applyFlags(func(Override) bool { return true })
	if v, ok := l.settings["version"]; ok && v.text[0] != strconv.Itoa(Version) {
		// A file of another version is full of faults that are none.
		l.list = nil
		l.add(v.origin, "version", "write version: 1, or use the hbackup that the file was written for", "this hbackup reads version %d of the format, not %s", Version, printable(v.text[0]))
		return nil, &Error{Problems: l.list}
	}
	cfg := &Config{File: file}
	l.build(schema(), reflect.ValueOf(cfg).Elem(), "")
	if len(l.list) == 0 {
		l.check(cfg)
	}
	if len(l.list) > 0 {
		sortProblems(l.list)
		return nil, &Error{Problems: l.list}
	}
	cfg.Warnings = l.warnings.list
	sortProblems(cfg.Warnings)
	l.resolve(cfg)
	return cfg, nil
}

// setting is a value as it was written somewhere.
type setting struct {
	path   string
	node   *node
	text   []string // one element, or the items of a list
	origin Origin
}

// loader gathers what the layers say, then builds the Config from it.
type loader struct {
	problems
	warnings problems
	opts     LoadOptions
	settings map[string]setting
	sections map[string]Origin   // where a section is, to point at it when a key is missing
	names    map[string][]string // the names in clusters and locations, in the order of the file
	excused  map[string]bool     // missing keys that are not worth a second message
	values   []Value
}

// set lets the setting win over an earlier one of the same key. A reference to
// a secret is replaced as a whole.
func (l *loader) set(s setting) {
	parent, key := split(s.path)
	for _, other := range []string{"env", "file"} {
		old, ok := l.settings[join(parent, other)]
		if ok && other != key && strings.Contains(parent, ".") && isSecretPath(parent) && old.origin.Source != s.origin.Source {
			delete(l.settings, old.path)
		}
	}
	l.settings[s.path] = s
}

func isSecretPath(path string) bool {
	n := find(path)
	return n != nil && n.shape == shapeSecret
}

// present records a section; the first mention counts.
func (l *loader) present(path string, o Origin) {
	if _, ok := l.sections[path]; !ok || path == "" {
		l.sections[path] = o
	}
}

// addName records a name below a section of names, once.
func (l *loader) addName(n *node, path, name string, o Origin) error {
	v := reflect.New(n.typ.Key()).Elem()
	v.SetString(name)
	if err := v.Interface().(interface{ Validate() error }).Validate(); err != nil {
		return err
	}
	if !slices.Contains(l.names[path], name) {
		l.names[path] = append(l.names[path], name)
	}
	l.present(join(path, name), o)
	return nil
}

// originOf gives where the key was written, or where its section is.
func (l *loader) originOf(path string) Origin {
	for p := path; ; p, _ = split(p) {
		if s, ok := l.settings[p]; ok {
			return s.origin
		}
		if o, ok := l.sections[p]; ok {
			return o
		}
	}
}

// sortProblems puts them in the order in which people meet them.
func sortProblems(list []Problem) {
	rank := map[Source]int{SourceFile: 0, SourceEnv: 1, SourceFlag: 2, SourceDefault: 3}
	slices.SortStableFunc(list, func(a, b Problem) int {
		if d := rank[a.Origin.Source] - rank[b.Origin.Source]; d != 0 {
			return d
		}
		return a.Origin.Line - b.Origin.Line
	})
}

// find gives the node of a path, or nil.
func find(path string) *node {
	n := schema()
	for seg := range strings.SplitSeq(path, ".") {
		if n = n.child(seg); n == nil {
			return nil
		}
	}
	return n
}

// split takes the last segment off a path.
func split(path string) (parent, key string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
