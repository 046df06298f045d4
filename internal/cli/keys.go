package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type keysCommand struct {
	Create createKeyCommand `cmd:"" help:"Create a key and print only its value to standard output."`
	List   listKeysCommand  `cmd:"" help:"List the keys of a workspace."`
	Revoke revokeKeyCommand `cmd:"" help:"Permanently revoke a key."`
}

type createKeyCommand struct {
	Name      string   `required:"" help:"The name of the key."`
	Scope     []string `required:"" placeholder:"SCOPE" help:"The scopes of the key: read, write, execute, admin."`
	Workspace string   `placeholder:"ID" help:"The workspace of the key (default: the first)."`
	Expires   string   `placeholder:"TIME" help:"How long the key is valid, such as 90d (default: it does not expire)."`
}

// Run creates a key.
func (c *createKeyCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		return admin.CreateKey(con, c.Workspace, c.Name, c.Scope, c.Expires, con.show)
	})
}

type listKeysCommand struct {
	Workspace string `placeholder:"ID" help:"The workspace (default: the first)."`
	JSON      bool   `help:"Print JSON."`
}

// Run lists keys.
func (c *listKeysCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		keys, err := admin.Keys(con, c.Workspace)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "NAME", "PREFIX", "SCOPES", "CREATED", "EXPIRES", "LAST USED"}}
		for _, k := range keys {
			rows = append(rows, []string{k.ID, k.Name, k.Prefix, k.Scopes, formatTime(&k.CreatedAt), formatTime(k.ExpiresAt), formatTime(k.LastUsedAt)})
		}
		return printResult(con, c.JSON, keys, rows)
	})
}

type revokeKeyCommand struct {
	ID        string `arg:"" help:"The id of the key, as listed."`
	Workspace string `placeholder:"ID" help:"The workspace (default: the first)."`
}

// Run revokes a key.
func (c *revokeKeyCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		if err := admin.RevokeKey(con, c.Workspace, c.ID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(con.out, "revoked %s\n", c.ID)
		return err
	})
}
