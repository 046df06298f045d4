package cli

import (
	"fmt"
	"os"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type importCommand struct {
	File string `arg:"" help:"The export to read. - reads from standard input."`
}

// Run imports an installation.
func (c *importCommand) Run(con *console, data config.Data) error {
	var rows int64
	var err error
	if c.File == stdio {
		rows, err = app.ImportFrom(con, data, os.Stdin)
	} else {
		rows, err = app.Import(con, data, c.File)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "imported %d rows into %s\nThe server needs the master key that the data was encrypted with (%s).\n", rows, app.DataLocation(data), data.KeyLocation())
	return err
}
