package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
	"hbackup/internal/redact"
	"hbackup/internal/ui"
)

// program is one run of hbackup with all that comes from outside, so that tests
// can put their own in.
type program struct {
	stdout, stderr io.Writer
	environ        []string
	now            func() time.Time
	// connect gives the services that a verb works with. Nothing is reached
	// before a verb asks for it.
	connect func(*session) (services, error)
	// searchPaths are where the configuration is looked for; nil means the usual places.
	searchPaths []string

	out     *ui.Lines
	console *ui.Console
	secrets *redact.Secrets
	format  format
}

// services are all that the verbs need; each verb declares its own part.
type services interface {
	backupRunner
	historyReader
	backupFinder
	infoReader
	restoreRunner
	imageVerifier
	clusterChecker
	committerBench
	targetValidator
	io.Closer
}

// run does what the arguments say and gives the exit code.
func (p *program) run(ctx context.Context, args []string) exitCode {
	p.out, p.console, p.secrets = ui.NewLines(p.stdout), ui.NewConsole(p.stderr), &redact.Secrets{}
	err := p.dispatch(ctx, args)
	if err == nil && p.out.Err() != nil {
		err = hbackup.E("write to standard output", "", hbackup.KindOther, p.out.Err())
	}
	code := codeOf(ctx, err)
	if err != nil {
		p.report(err, code)
	}
	return code
}

// dispatch brings the arguments into order, then runs the verb.
func (p *program) dispatch(ctx context.Context, args []string) error {
	app := p.app()
	line, err := arrange(app, args)
	p.format = line.format // so that the error itself has the right form
	if err != nil {
		return err
	}
	if line.help {
		return p.help(app, line.path)
	}
	return app.RunContext(ctx, line.args)
}

// app describes the command line.
func (p *program) app() *cli.App {
	return &cli.App{
		Name:                      "hbackup",
		Usage:                     "back up Apache HBase tables and restore them",
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // values of --set may hold commas
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		Flags:                     globalFlags(),
		Commands: p.verbs(
			p.backupCommand(),
			p.listCommand(),
			p.describeCommand(),
			p.infoCommand(),
			p.restoreCommand(),
			p.verifyCommand(),
			p.checkCommand(),
			p.benchCommand(),
			p.targetCommand(),
			p.configCommand(),
			p.versionCommand(),
		),
	}
}

// verbs gives all commands, also those below others, the same manners.
func (p *program) verbs(commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.HideHelp = true
		c.OnUsageError = usageError
		p.verbs(c.Subcommands...)
	}
	return commands
}

// usageError classes what the flag parser finds after arrange has looked.
func usageError(c *cli.Context, err error, _ bool) error {
	var known *hbackup.Error
	if errors.As(err, &known) {
		return err
	}
	return hbackup.E(verbOf(c), "", hbackup.KindUsage, err)
}
