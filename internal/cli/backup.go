package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type backupCommand struct {
	File string `arg:"" help:"The file to write; it must not exist."`
}

// Run writes a backup.
func (c *backupCommand) Run(con *console, data config.Data) error {
	if err := app.Backup(con, data, c.File); err != nil {
		return err
	}
	_, err := fmt.Fprintf(con.out, "wrote %s\nThe master key is not in it. It is %s: keep a copy in another place.\n", c.File, data.KeyPlace())
	return err
}

type restoreCommand struct {
	File string `arg:"" help:"The backup to restore."`
}

// Run restores a backup.
func (c *restoreCommand) Run(con *console, data config.Data) error {
	kept, err := app.Restore(con, data, c.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(con.out, "restored %s into %s\n", c.File, data.Dir)
	if kept != "" {
		fmt.Fprintf(con.out, "what was there before is kept as %s\n", kept)
	}
	_, err = fmt.Fprintf(con.out, "The server needs the master key that it was sealed with (%s).\n", data.KeyPlace())
	return err
}
