// Package cli implements the command line: one file per command, with its flags,
// STEPMILL_* variables and output. Package app does the work.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

// commands declares the commands and the global flags.
type commands struct {
	config.Data

	Serve        serveCommand        `cmd:"" help:"Run the service."`
	Worker       workerCommand       `cmd:"" help:"Execute runs of a shared database without serving requests."`
	Migrate      migrateCommand      `cmd:"" help:"Migrate the schema of a shared database to the current version."`
	Keys         keysCommand         `cmd:"" help:"Manage API keys."`
	Users        usersCommand        `cmd:"" help:"List users and create sign-in links."`
	Audit        auditCommand        `cmd:"" help:"Verify the audit log."`
	Files        filesCommand        `cmd:"" help:"Verify the bytes of files."`
	Workspaces   workspacesCommand   `cmd:"" help:"Manage workspaces and their plans."`
	Workflows    workflowsCommand    `cmd:"" help:"Create workflows."`
	Templates    templatesCommand    `cmd:"" help:"List workflow templates."`
	Integrations integrationsCommand `cmd:"" help:"Show integrations, and check and test manifests."`
	Backup       backupCommand       `cmd:"" help:"Write a consistent copy of the data, even while the server is running."`
	Restore      restoreCommand      `cmd:"" help:"Replace the data with a backup. The server must be stopped."`
	Export       exportCommand       `cmd:"" help:"Export all data to a file that another installation can import. The server must be stopped."`
	Import       importCommand       `cmd:"" help:"Import an export into an empty installation."`
	MasterKey    masterKeyCommand    `cmd:"" help:"Manage the key that encrypts all secrets."`
	Version      versionCommand      `cmd:"" help:"Print the version."`
	Sandbox      sandboxCommand      `cmd:"" hidden:"" help:"Run scripts received on standard input."`
}

// console holds the context and the output streams of a command.
type console struct {
	context.Context
	args     []string
	out, err io.Writer
	// admin is the installation if the command runs in its server, else nil.
	admin *app.Admin
}

// exit is panicked with to unwind kong when it wants to exit with a status.
type exit int

// Main runs a command line and returns the exit status.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	return run(&console{Context: ctx, args: args, out: stdout, err: stderr})
}

// runInServer runs a command line that a command has sent to its server.
func runInServer(ctx context.Context, admin *app.Admin, args []string, stdout, stderr io.Writer) (status int) {
	return run(&console{Context: ctx, args: args, out: stdout, err: stderr, admin: admin})
}

var serverCommands = []string{"keys", "users", "audit", "files", "workspaces", "workflows", "backup"}

func run(con *console) (status int) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case exit:
			status = int(p)
		default:
			panic(p)
		}
	}()
	var cli commands
	parser, err := kong.New(&cli,
		kong.Name("stepmill"),
		kong.Description("Durable workflow automation. Start with: stepmill serve"),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(con.out, con.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
	)
	if err != nil {
		return fail(con.err, err)
	}
	parsed, err := parser.Parse(con.args)
	if err != nil {
		return fail(con.err, err)
	}
	if command, _, _ := strings.Cut(parsed.Command(), " "); con.admin != nil && !slices.Contains(serverCommands, command) {
		return fail(con.err, fmt.Errorf("the server does not run `stepmill %s` for others", command))
	}
	if err := parsed.Run(con, cli.Data); err != nil {
		return fail(con.err, err)
	}
	return 0
}

func fail(stderr io.Writer, err error) int {
	if errors.Is(err, context.Canceled) {
		return 0 // stopped before it started
	}
	fmt.Fprintf(stderr, "stepmill: %v\n", err)
	return 1
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
