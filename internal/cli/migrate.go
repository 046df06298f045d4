package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type migrateCommand struct{}

// Run migrates the schema of a shared database.
func (c *migrateCommand) Run(con *console, data config.Data) error {
	if err := app.Migrate(con, data); err != nil {
		return err
	}
	_, err := fmt.Fprintln(con.out, "The database schema is up to date.")
	return err
}
