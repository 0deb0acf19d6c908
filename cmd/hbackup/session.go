package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/config"
	"hbackup/internal/ui"
)

// session is what a verb works with once its own flags are found good: the
// configuration, the log, the services and the output.
type session struct {
	*program
	cfg      *config.Config
	log      *slog.Logger
	services services
	verb     string
	quiet    bool
	progress bool
}

// arguments checks the global flags and the number of operands. Every verb calls
// it, or open, which does, before anything else.
func (p *program) arguments(c *cli.Context, operands ...string) error {
	if _, err := parseFormat(c.String("output")); err != nil {
		return err
	}
	if _, err := overrides(c); err != nil {
		return err
	}
	name := verbOf(c)
	switch n := c.Args().Len(); {
	case n < len(operands):
		return hbackup.Errorf(name, "", hbackup.KindUsage, "%s is missing", operands[n]).
			WithHint("usage: hbackup %s %s [flags]", name, strings.Join(operands, " "))
	case n > len(operands):
		return hbackup.Errorf(name, "", hbackup.KindUsage, "unexpected argument %s", quoteOdd(c.Args().Get(len(operands)))).
			WithHint("usage: hbackup %s", strings.TrimSpace(name+" "+strings.Join(operands, " ")+" [flags]"))
	}
	return nil
}

// overrides reads --set, --log-level and --trace-store.
func overrides(c *cli.Context) ([]config.Override, error) {
	var all []config.Override
	for _, s := range c.StringSlice("set") {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			// The text may be a secret that was typed in the wrong place, so only its start is shown.
			return nil, hbackup.Errorf("--set", "", hbackup.KindUsage, "%s has no value", quoteOdd(key)).
				WithHint("write it as --set clusters.prod.target=main")
		}
		all = append(all, config.Override{Key: key, Value: value, Flag: "--set " + key})
	}
	if c.IsSet("log-level") {
		all = append(all, config.Override{Key: "log.level", Value: c.String("log-level"), Flag: "--log-level"})
	}
	if c.String("trace-store") != "" {
		file, err := filepath.Abs(c.String("trace-store"))
		if err != nil {
			return nil, hbackup.E("--trace-store", c.String("trace-store"), hbackup.KindUsage, err)
		}
		all = append(all, config.Override{Key: "log.trace_store", Value: file, Flag: "--trace-store"})
	}
	return all, nil
}

// load reads the configuration.
func (p *program) load(c *cli.Context) (*config.Config, error) {
	set, err := overrides(c)
	if err != nil {
		return nil, err
	}
	return config.Load(config.LoadOptions{Path: c.String("config"), SearchPaths: p.searchPaths, Environ: p.environ, Set: set})
}

// open reads the configuration and makes everything ready for the verb.
func (p *program) open(c *cli.Context) (*session, error) {
	cfg, err := p.load(c)
	if err != nil {
		return nil, err
	}
	s := &session{program: p, cfg: cfg, verb: c.Command.Name, quiet: c.Bool("quiet")}
	s.progress = !s.quiet && !c.Bool("no-progress")
	s.learnSecrets()
	s.log = s.logger()
	for _, w := range cfg.Warnings {
		s.log.Warn(w.String())
	}
	s.services, err = p.connect(s)
	return s, err
}

// learnSecrets makes the secrets of the configuration and of the AWS SDK's
// variables unprintable. Those that are missing are reported where they are needed.
func (s *session) learnSecrets() {
	for _, loc := range s.cfg.Locations {
		for _, secret := range loc.Secrets() {
			if !secret.IsSet() {
				continue
			}
			if value, err := secret.Read(); err == nil {
				s.secrets.Add(value)
			}
		}
	}
	for _, kv := range s.environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == "AWS_SECRET_ACCESS_KEY" || name == "AWS_SESSION_TOKEN" {
			s.secrets.Add(value)
		}
	}
}

// logger writes to standard error, above the progress line and without secrets.
func (s *session) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.cfg.Log.Level)); err != nil {
		level = slog.LevelInfo // the configuration allows no other words
	}
	if s.quiet {
		level = max(level, slog.LevelWarn)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: utcTime}
	var h slog.Handler = slog.NewTextHandler(s.console, opts)
	if s.cfg.Log.Format == "json" {
		h = slog.NewJSONHandler(s.console, opts)
	}
	return slog.New(s.secrets.Handler(h))
}

// utcTime writes the time of a message as every other time is written.
func utcTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.String(slog.TimeKey, hbackup.FormatTime(a.Value.Time()))
	}
	return a
}

// track starts showing the progress of the verb; the function that it gives ends it.
func (s *session) track() (*ui.Progress, func()) {
	p := ui.NewProgress(s.verb, s.now)
	if !s.progress {
		return p, func() {}
	}
	if s.format == formatJSONL {
		return p, ui.ShowAsEvents(s.out, p).Stop
	}
	return p, ui.ShowOn(s.console, p).Stop
}

// document is the result of a verb in its three forms.
type document interface {
	schema() string // "hbackup.list/1"
	table(now nowFunc) []*ui.Table
	// lines are the parts that a JSON stream shows one by one, and what is left
	// for its summary.
	lines() (parts []part, summary any)
}

// part is one line of a JSON stream.
type part struct {
	typ   string
	value any
}

// emit writes the result of a verb to standard output.
func (p *program) emit(d document) error {
	switch p.format {
	case formatJSON:
		return ui.WriteDocument(p.out, d.schema(), d)
	case formatJSONL:
		parts, summary := d.lines()
		for _, part := range parts {
			if err := ui.WriteLine(p.out, part.typ, "", part.value); err != nil {
				return err
			}
		}
		return ui.WriteLine(p.out, "summary", d.schema(), summary)
	}
	for i, t := range d.table(p.now) {
		if i > 0 {
			if _, err := p.out.Write([]byte("\n")); err != nil {
				return err
			}
		}
		if _, err := t.WriteTo(p.out); err != nil {
			return err
		}
	}
	return nil
}

// withSession is the frame of a verb that needs the services.
func (p *program) withSession(c *cli.Context, do func(context.Context, *session) error) error {
	s, err := p.open(c)
	if err != nil {
		return err
	}
	err = do(c.Context, s)
	if cerr := s.services.Close(); err == nil && cerr != nil {
		s.log.Warn("a connection was not closed cleanly", "error", cerr)
	}
	return err
}

// cluster gives the cluster of a flag.
func (s *session) cluster(name hbackup.ClusterName) (*config.Cluster, error) {
	return s.cfg.Cluster(name)
}

// clusters gives the named one, or all when there is no name.
func (s *session) clusters(name hbackup.ClusterName) ([]*config.Cluster, error) {
	if name == "" {
		return s.cfg.AllClusters(), nil
	}
	cl, err := s.cfg.Cluster(name)
	if err != nil {
		return nil, err
	}
	return []*config.Cluster{cl}, nil
}

// hostName is this machine's name, for records.
func hostName() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return h
}
