package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/internal/nearest"
)

// format is the form of what goes to standard output.
type format string

const (
	formatTable format = "table" // for people
	formatJSON  format = "json"  // one document
	formatJSONL format = "jsonl" // one object a line while the verb runs, a summary or an error last
)

var formats = []string{string(formatTable), string(formatJSON), string(formatJSONL)}

func parseFormat(s string) (format, error) {
	for _, f := range formats {
		if s == f {
			return format(s), nil
		}
	}
	e := hbackup.Errorf("--output", "", hbackup.KindUsage, "%q is not one of %s", s, strings.Join(formats, ", "))
	if near := nearest.To(s, formats); near != "" {
		return formatTable, e.WithHint("did you mean %s?", near)
	}
	return formatTable, e
}

// globalFlags may stand anywhere on the command line.
func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Usage: "`FILE` to read as the configuration (default: $HBACKUP_CONFIG, hbackup.yaml, /etc/hbackup/hbackup.yaml)"},
		&cli.StringSliceFlag{Name: "set", Usage: "`KEY=VALUE` overrides one key of the configuration; may be repeated"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the result: table, json or jsonl", Value: string(formatTable)},
		&cli.StringFlag{Name: "log-level", Usage: "`LEVEL` of the messages: debug, info, warn or error; the same as --set log.level=LEVEL"},
		&cli.StringFlag{Name: "trace-store", Usage: "`FILE` to which every call of a location is added as a line of JSON; the same as --set log.trace_store=FILE"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress, and no messages but warnings and errors"},
		&cli.BoolFlag{Name: "no-progress", Usage: "no progress"},
	}
}

// Flags that several verbs have.

func clusterFlag(usage string) *cli.StringFlag { return &cli.StringFlag{Name: "cluster", Usage: usage} }

func initFlag(usage string) *cli.BoolFlag { return &cli.BoolFlag{Name: "init", Usage: usage} }

func requestIDFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: "request-id", Usage: "`ID` of your own for this run; running again with the same one continues it or confirms that it is done (default: a new one)"}
}
