// Package cli is the command line: a file per command, flags and STEPMILL_*
// variables, and what a person reads. The work is done by app.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/stepmill/stepmill/internal/config"
)

// commands is the whole command line.
type commands struct {
	config.Data

	Serve      serveCommand      `cmd:"" help:"Run the service."`
	Worker     workerCommand     `cmd:"" help:"Execute runs of a shared database, without serving requests."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the schema of a shared database up to date."`
	Keys       keysCommand       `cmd:"" help:"Manage API keys."`
	Users      usersCommand      `cmd:"" help:"List users, and let one in who cannot sign in."`
	Workspaces workspacesCommand `cmd:"" help:"Manage workspaces and their plans."`
	Workflows  workflowsCommand  `cmd:"" help:"Make workflows."`
	Templates  templatesCommand  `cmd:"" help:"List the workflows to begin with."`
	Backup     backupCommand     `cmd:"" help:"Write a consistent copy of the data, also while the server runs."`
	Restore    restoreCommand    `cmd:"" help:"Put a backup in the place of the data. The server must be stopped."`
	Export     exportCommand     `cmd:"" help:"Write everything to a file that another installation imports. The server must be stopped."`
	Import     importCommand     `cmd:"" help:"Fill an empty installation from an export."`
	MasterKey  masterKeyCommand  `cmd:"" help:"Manage the key that seals all secrets."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Sandbox    sandboxCommand    `cmd:"" hidden:"" help:"Run scripts that a server sends on standard input."`
}

// console is where a command talks to the person.
type console struct {
	context.Context
	out, err io.Writer
}

// exit carries the status that kong wants to end with past its own code.
type exit int

// Main runs a command line and returns the exit status.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	defer func() {
		if code, ok := recover().(exit); ok {
			status = int(code)
		}
	}()
	var cli commands
	parser, err := kong.New(&cli,
		kong.Name("stepmill"),
		kong.Description("Workflow automation that loses nothing. Start with: stepmill serve"),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
	)
	if err != nil {
		return fail(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return fail(stderr, err)
	}
	if err := parsed.Run(&console{ctx, stdout, stderr}, cli.Data); err != nil {
		return fail(stderr, err)
	}
	return 0
}

func fail(stderr io.Writer, err error) int {
	if errors.Is(err, context.Canceled) {
		return 0 // told to stop before it had begun
	}
	fmt.Fprintf(stderr, "stepmill: %v\n", err)
	return 1
}

// terminal tells whether a person looks at the output.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
