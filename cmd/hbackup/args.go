package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/internal/nearest"
)

// line is a command line in the order in which the flag parser wants it: the
// program, global flags, the verb, its flags, its arguments.
type line struct {
	args   []string
	path   []string // the verb, as {"config", "show"}
	help   bool     // help is asked for instead
	format format
}

// arrange lets flags stand anywhere, as people write them: "restore ID --table t
// -o json". It refuses unknown verbs and flags with the nearest known one, and
// flags that lack their value.
func arrange(app *cli.App, args []string) (line, error) {
	r := &arranger{app: app, format: formatTable}
	err := r.read(args)
	l := line{path: r.path, help: r.help, format: r.format}
	if err != nil || r.help {
		return l, err
	}
	if r.verb == nil || len(r.verb.Subcommands) > 0 {
		return l, r.noVerb()
	}
	l.args = slices.Concat([]string{app.Name}, r.globals)
	l.args = append(l.args, r.path...)
	l.args = append(l.args, r.flags...)
	l.args = append(l.args, "--")
	l.args = append(l.args, r.operands...)
	return l, nil
}

type arranger struct {
	app      *cli.App
	verb     *cli.Command
	path     []string
	globals  []string
	flags    []string
	operands []string
	help     bool
	format   format
	seen     map[string]bool
}

func (r *arranger) read(args []string) error {
	r.seen = map[string]bool{}
	r.peekFormat(args)
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			r.operands = append(r.operands, args...)
			return nil
		case arg == "-h", arg == "--help":
			r.help = true
		case len(arg) > 1 && arg[0] == '-':
			rest, err := r.flag(arg, args)
			if err != nil {
				return err
			}
			args = rest
		case arg == "help" && r.verb == nil:
			r.help = true
		case r.verb == nil || len(r.verb.Subcommands) > 0:
			if err := r.name(arg); err != nil {
				return err
			}
		default:
			r.operands = append(r.operands, arg)
		}
	}
	return nil
}

// peekFormat finds --output before anything can go wrong, so that errors of the
// command line itself come in the form that was asked for.
func (r *arranger) peekFormat(args []string) {
	for i, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if name != "-o" && name != "--output" && name != "-output" && name != "--o" {
			continue
		}
		if !has && i+1 < len(args) {
			value = args[i+1]
		}
		if f, err := parseFormat(value); err == nil {
			r.format = f
		}
	}
}

// name takes the next word of the verb.
func (r *arranger) name(word string) error {
	commands := r.app.Commands
	if r.verb != nil {
		commands = r.verb.Subcommands
	}
	var names []string
	for _, c := range commands {
		if c.Name == word {
			r.verb, r.path = c, append(r.path, word)
			return nil
		}
		names = append(names, c.Name)
	}
	e := hbackup.Errorf(strings.Join(r.path, " "), "", hbackup.KindUsage, "unknown verb %s", quoteOdd(word))
	if near := nearest.To(word, names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("the verbs are: %s", strings.Join(names, ", "))
}

func (r *arranger) noVerb() error {
	e := hbackup.Errorf(strings.Join(r.path, " "), "", hbackup.KindUsage, "no verb is given")
	if len(r.path) == 0 {
		return e.WithHint("hbackup --help lists them")
	}
	return e.WithHint("hbackup %s --help lists them", strings.Join(r.path, " "))
}

// flag takes a flag and, when it has one, its value from the rest.
func (r *arranger) flag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	shown := arg[:len(arg)-len(strings.TrimLeft(arg, "-"))] + name
	f, global := r.find(name)
	if f == nil {
		return nil, r.unknownFlag(shown, name)
	}
	takes := f.(cli.DocGenerationFlag).TakesValue()
	_, repeats := f.(*cli.StringSliceFlag)
	canonical := "--" + f.Names()[0]
	switch {
	case !repeats && r.seen[canonical]:
		return nil, r.bad("the flag %s is given twice", canonical)
	case takes && !hasValue && len(rest) == 0:
		return nil, r.bad("the flag %s needs a value", canonical)
	case takes && !hasValue && len(rest[0]) > 1 && rest[0][0] == '-':
		return nil, r.bad("the flag %s needs a value, and %s looks like another flag", canonical, quoteOdd(rest[0])).
			WithHint("write %s=%s if it is the value", canonical, rest[0])
	case takes && !hasValue:
		value, rest = rest[0], rest[1:]
	case !takes && hasValue && value != "true" && value != "false":
		return nil, r.bad("the flag %s takes no value", canonical)
	case !takes && !hasValue:
		value = "true"
	}
	r.seen[canonical] = true
	if global {
		r.globals = append(r.globals, canonical+"="+value)
	} else {
		r.flags = append(r.flags, canonical+"="+value)
	}
	return rest, nil
}

// find looks for a flag of the verb, then for a global one.
func (r *arranger) find(name string) (f cli.Flag, global bool) {
	if r.verb != nil {
		for _, f := range r.verb.Flags {
			if slices.Contains(f.Names(), name) {
				return f, false
			}
		}
	}
	for _, f := range r.app.Flags {
		if slices.Contains(f.Names(), name) {
			return f, true
		}
	}
	return nil, false
}

func (r *arranger) unknownFlag(shown, name string) error {
	e := r.bad("unknown flag %s", quoteOdd(shown))
	if name == "version" && r.verb == nil {
		return e.WithHint("hbackup version shows the version")
	}
	var known []string
	if r.verb != nil {
		for _, f := range r.verb.Flags {
			known = append(known, f.Names()[0])
		}
	}
	for _, f := range r.app.Flags {
		known = append(known, f.Names()[0])
	}
	if near := nearest.To(name, known); near != "" {
		return e.WithHint("did you mean --%s?", near)
	}
	if r.verb == nil {
		return e.WithHint("flags of a verb come after it; hbackup --help lists the verbs and the global flags")
	}
	return e.WithHint("hbackup %s --help lists the flags", strings.Join(r.path, " "))
}

func (r *arranger) bad(format string, args ...any) *hbackup.Error {
	return hbackup.Errorf(strings.Join(r.path, " "), "", hbackup.KindUsage, format, args...)
}
