package cli

import (
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type backupCommand struct {
	File string `arg:"" help:"The file to write. It must not exist. - writes to standard output."`
}

// Run writes a backup.
func (c *backupCommand) Run(con *console, data config.Data) error {
	out, name := con.out, c.File
	var err error
	switch {
	case con.admin != nil:
		return con.admin.WriteBackup(con, con.out, con.err) // for the command that has asked for it
	case c.File != stdio:
		err = app.Backup(con, data, c.File, con.err)
	case isTerminal(con.out):
		return errors.New("the backup cannot be written to a terminal: name a file or redirect standard output")
	default:
		err = app.BackupTo(con, data, con.out, con.err)
		out, name = con.err, "the backup"
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "wrote %s\nThe backup does not contain the master key. It is %s: keep a copy somewhere else.\n", name, data.KeyLocation())
	return err
}

type restoreCommand struct {
	File string `arg:"" help:"The backup to restore."`
}

// Run restores a backup.
func (c *restoreCommand) Run(con *console, data config.Data) error {
	previous, err := app.Restore(con, data, c.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(con.out, "restored %s into %s\n", c.File, data.Dir)
	if previous != "" {
		fmt.Fprintf(con.out, "the previous data was saved as %s\n", previous)
	}
	_, err = fmt.Fprintf(con.out, "The server needs the master key that the backup was encrypted with (%s).\n", data.KeyLocation())
	return err
}
