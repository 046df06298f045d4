package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type masterKeyCommand struct {
	Create createMasterKeyCommand `cmd:"" help:"Make a master key for nodes that will share a database."`
	Rotate rotateMasterKeyCommand `cmd:"" help:"Change to another master key. The server must be stopped."`
}

type createMasterKeyCommand struct {
	File string `arg:"" help:"File to make, which must not exist."`
}

// Run makes a master key.
func (c *createMasterKeyCommand) Run(con *console) error {
	if err := app.CreateMasterKey(c.File); err != nil {
		return err
	}
	_, err := fmt.Fprintf(con.out, "%s is a new master key. Give it to every node, and keep a copy in another place: without it no secret can be read.\n", c.File)
	return err
}

type rotateMasterKeyCommand struct {
	To string `placeholder:"FILE" help:"File with the new key, 32 bytes in base64 or hex (default: a key is made)."`
}

// Run changes to another master key.
func (c *rotateMasterKeyCommand) Run(con *console, data config.Data) error {
	kept, err := app.RotateMasterKey(con, data, c.To)
	if err != nil {
		return err
	}
	if kept == "" {
		_, err = fmt.Fprintln(con.out, "The data is sealed with the new master key. Set STEPMILL_MASTER_KEY to it before the next start.")
		return err
	}
	_, err = fmt.Fprintf(con.out, "The new master key is %s: keep a copy in another place.\n"+
		"The one before is kept as %s: backups made until now need it.\n", data.KeyPlace(), kept)
	return err
}
