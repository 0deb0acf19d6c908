package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

// help writes the page of the program or of one verb to standard output.
func (p *program) help(app *cli.App, path []string) error {
	var b strings.Builder
	if len(path) == 0 {
		programHelp(&b, app)
	} else {
		verb, commands := (*cli.Command)(nil), app.Commands
		for _, word := range path {
			for _, c := range commands {
				if c.Name == word {
					verb, commands = c, c.Subcommands
					break
				}
			}
		}
		verbHelp(&b, path, verb)
	}
	_, err := p.out.Write([]byte(b.String()))
	return err
}

func programHelp(b *strings.Builder, app *cli.App) {
	fmt.Fprintf(b, "hbackup: %s\n\nusage: hbackup VERB [flags]\n\nverbs:\n", app.Usage)
	commandLines(b, app.Commands)
	b.WriteString("\nflags, for every verb:\n")
	flagLines(b, app.Flags)
	b.WriteString("\nhbackup VERB --help shows more of a verb.\n")
}

func verbHelp(b *strings.Builder, path []string, c *cli.Command) {
	name := strings.Join(path, " ")
	fmt.Fprintf(b, "hbackup %s: %s\n\nusage: hbackup %s", name, c.Usage, name)
	if len(c.Subcommands) > 0 {
		b.WriteString(" VERB [flags]\n\nverbs:\n")
		commandLines(b, c.Subcommands)
		return
	}
	if c.ArgsUsage != "" {
		b.WriteString(" " + c.ArgsUsage)
	}
	b.WriteString(" [flags]\n")
	if c.Description != "" {
		b.WriteString("\n" + strings.TrimSpace(c.Description) + "\n")
	}
	if len(c.Flags) > 0 {
		b.WriteString("\nflags:\n")
		flagLines(b, c.Flags)
	}
	if c.UsageText != "" {
		b.WriteString("\nexamples:\n")
		for example := range strings.Lines(strings.TrimSpace(c.UsageText)) {
			b.WriteString("  " + strings.TrimSpace(example) + "\n")
		}
	}
	b.WriteString("\nhbackup --help shows the flags that every verb has.\n")
}

func commandLines(b *strings.Builder, commands []*cli.Command) {
	for _, c := range commands {
		fmt.Fprintf(b, "  %-9s %s\n", c.Name, c.Usage)
	}
}

// placeholderOf finds `NAME` in the description of a flag.
var placeholderOf = regexp.MustCompile("`([^`]+)`")

const helpWidth = 100

func flagLines(b *strings.Builder, flags []cli.Flag) {
	type entry struct{ left, right string }
	var entries []entry
	width := 0
	for _, f := range flags {
		usage := f.(cli.DocGenerationFlag).GetUsage()
		left := "--" + f.Names()[0]
		for _, alias := range f.Names()[1:] {
			left = "-" + alias + ", " + left
		}
		if m := placeholderOf.FindStringSubmatch(usage); m != nil {
			left += " " + m[1]
			usage = strings.Replace(usage, m[0], m[1], 1)
		}
		entries = append(entries, entry{left, usage})
		width = max(width, len(left))
	}
	for _, e := range entries {
		indent := strings.Repeat(" ", width+4)
		for i, text := range wrap(e.right, helpWidth-width-4) {
			if i == 0 {
				fmt.Fprintf(b, "  %-*s  %s\n", width, e.left, text)
			} else {
				b.WriteString(indent + text + "\n")
			}
		}
	}
}

// wrap breaks a text between words.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
