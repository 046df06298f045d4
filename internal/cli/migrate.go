package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type migrateCommand struct{}

// Run brings the schema of a shared database up to date.
func (c *migrateCommand) Run(con *console, data config.Data) error {
	if err := app.Migrate(con, data); err != nil {
		return err
	}
	_, err := fmt.Fprintln(con.out, "The schema of the database is up to date.")
	return err
}
