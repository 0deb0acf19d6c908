package config

import (
	"slices"
	"strings"

	"hbackup/internal/nearest"
)

// envPrefix starts the names of all variables that override keys.
const (
	envPrefix = "HBACKUP_"
	envConfig = "HBACKUP_CONFIG"
)

// EnvName gives the variable that overrides a key: the path in upper case, with
// '_' for everything that is no letter or digit.
func EnvName(path string) string {
	return envPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, path)
}

// eachKey calls f with every key that holds a value, for the names that are known.
func (l *loader) eachKey(n *node, path string, f func(path string, n *node)) {
	switch {
	case n.isValue():
		f(path, n)
	case n.shape == shapeNames:
		for _, name := range l.names[path] {
			l.eachKey(n.entry, join(path, name), f)
		}
	default:
		if n.shape == shapeSecret {
			f(path, n)
		}
		for _, c := range n.below {
			l.eachKey(c, join(path, c.key), f)
		}
	}
}

// applyEnv lets environment variables override keys. They cannot define a new
// cluster, location or set, because a name cannot be read back from a variable.
func (l *loader) applyEnv() {
	byName := map[string][]string{}
	l.eachKey(schema(), "", func(path string, n *node) {
		byName[EnvName(path)] = append(byName[EnvName(path)], path)
	})
	for _, kv := range slices.Sorted(slices.Values(l.opts.environ())) {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || value == "" || !strings.HasPrefix(name, envPrefix) || name == envConfig {
			continue
		}
		origin := Origin{Source: SourceEnv, Name: name}
		switch paths := byName[name]; len(paths) {
		case 0:
			l.unknownEnv(origin, byName)
		case 1:
			l.override(origin, paths[0], value)
		default:
			l.add(origin, "", "use --set, which takes the path itself", "the variable could mean %s", strings.Join(paths, " or "))
		}
	}
}

// unknownEnv judges a variable that no key has. One that looks like a key is an
// error, because its author believes that it works. Others may belong to a
// secret's reference or to somebody else: Kubernetes sets HBACKUP_PORT and its
// like for a service named hbackup.
func (l *loader) unknownEnv(o Origin, byName map[string][]string) {
	for _, s := range l.settings {
		if s.node.key == "env" && isSecretPath(parentOf(s.path)) && s.text[0] == o.Name {
			return
		}
	}
	rest := strings.TrimPrefix(o.Name, envPrefix)
	if strings.HasPrefix(rest, "SERVICE_") || rest == "PORT" || strings.HasPrefix(rest, "PORT_") {
		return
	}
	known := make([]string, 0, len(byName)+1)
	for name := range byName {
		known = append(known, name)
	}
	slices.Sort(known)
	hint := ""
	if near := nearest.To(rest, trimAll(append(known, envConfig))); near != "" {
		hint = "did you mean " + envPrefix + near + "?"
	}
	section, _, _ := strings.Cut(rest, "_")
	near := nearest.To(section, []string{"CLUSTERS", "LOCATIONS", "SETS", "COPY", "INDEX", "LOG", "VERSION", "CONFIG"})
	if hint == "" && near == "" {
		l.warnings.add(o, "", "", "the variable starts with %s but overrides no key; it is ignored", envPrefix)
		return
	}
	if hint == "" {
		hint = "a cluster, location or set must be in the file, or be given with --set, before a variable can change it"
	}
	l.add(o, "", hint, "the variable overrides no key")
}

func trimAll(names []string) []string {
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], envPrefix)
	}
	return names
}

// applyFlags lets the overrides of the command line that want says yes to take effect.
func (l *loader) applyFlags(want func(Override) bool) {
	for _, o := range l.opts.Set {
		if want(o) {
			l.override(Origin{Source: SourceFlag, Name: o.Flag}, o.Key, o.Value)
		}
	}
}

// declaresName reports whether the path goes through a cluster, location or set that
// no layer named yet. Such flags come before the environment, which needs the names.
func (l *loader) declaresName(path string) bool {
	segs := strings.SplitN(path, ".", 3)
	n := find(segs[0])
	return len(segs) == 3 && n != nil && n.shape == shapeNames && !slices.Contains(l.names[segs[0]], segs[1])
}

// override sets one key from outside the file.
func (l *loader) override(o Origin, path, value string) {
	n, at := schema(), ""
	for seg := range strings.SplitSeq(path, ".") {
		child := n.child(seg)
		if child == nil {
			if n.isValue() {
				l.add(o, "", "", "%s holds a value and has no keys below it", at)
				return
			}
			l.add(o, "", l.unknownHint(n, seg), "unknown key %s", printable(join(at, seg)))
			return
		}
		if n.shape == shapeNames {
			if err := l.addName(n, at, seg, o); err != nil {
				l.addErr(o, at, err)
				return
			}
		}
		n, at = child, join(at, seg)
	}
	switch n.shape {
	case shapeLeaf:
		l.set(setting{path: path, node: n, text: []string{value}, origin: o})
	case shapeList:
		l.set(setting{path: path, node: n, text: splitList(value), origin: o})
	case shapeSecret:
		l.add(o, path, "set "+path+".env or "+path+".file", "a secret must not stand in the configuration")
	case shapeNames:
		l.add(o, "", "name a key below it, as "+path+"."+placeholder+"."+n.entry.below[0].key, "%s is a section, not a value", path)
	default:
		l.add(o, "", "keys below it: "+strings.Join(n.keys(), ", "), "%s is a section, not a value", path)
	}
}

func parentOf(path string) string { p, _ := split(path); return p }
