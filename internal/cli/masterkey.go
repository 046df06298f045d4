package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type masterKeyCommand struct {
	Create createMasterKeyCommand `cmd:"" help:"Create a master key for nodes that share a database."`
	Rotate rotateMasterKeyCommand `cmd:"" help:"Replace the master key. The server must be stopped."`
}

type createMasterKeyCommand struct {
	File string `arg:"" help:"The file to write. It must not exist."`
}

// Run creates a master key.
func (c *createMasterKeyCommand) Run(con *console) error {
	if err := app.CreateMasterKey(c.File); err != nil {
		return err
	}
	_, err := fmt.Fprintf(con.out, "wrote a new master key to %s\nCopy it to every node and keep a copy somewhere else: without it, secrets cannot be decrypted.\n", c.File)
	return err
}

type rotateMasterKeyCommand struct {
	To string `placeholder:"FILE" help:"File with the new key, 32 bytes in base64 or hex (default: a key is generated)."`
}

// Run replaces the master key.
func (c *rotateMasterKeyCommand) Run(con *console, data config.Data) error {
	oldKey, err := app.RotateMasterKey(con, data, c.To)
	if err != nil {
		return err
	}
	if oldKey == "" {
		_, err = fmt.Fprintln(con.out, "The data is encrypted with the new master key. Set STEPMILL_MASTER_KEY to the new key before you start the server.")
		return err
	}
	_, err = fmt.Fprintf(con.out, "The new master key is %s: keep a copy somewhere else.\n"+
		"The old master key was saved as %s: existing backups need it.\n", data.KeyLocation(), oldKey)
	return err
}
