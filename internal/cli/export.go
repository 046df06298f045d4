package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

// stdio is the file name that means standard input or output.
const stdio = "-"

type exportCommand struct {
	File string `arg:"" help:"The file to write. It must not exist. - writes to standard output."`
}

// Run exports the installation.
func (c *exportCommand) Run(con *console, data config.Data) error {
	var rows int64
	var err error
	dest, name := con.out, c.File
	switch {
	case c.File != stdio:
		rows, err = app.Export(con, data, c.File, con.err)
	case isTerminal(con.out):
		return errors.New("the export cannot be written to a terminal: name a file or redirect standard output")
	default:
		rows, err = app.ExportTo(con, data, con.out, con.err)
		dest, name = con.err, "the export"
	}
	if err != nil {
		return err
	}
	return printExported(dest, name, rows, data)
}

func printExported(to io.Writer, name string, rows int64, data config.Data) error {
	_, err := fmt.Fprintf(to, "wrote %s with %d rows\nThe export does not contain the master key. It is %s: the installation that imports the export needs the same key.\n"+
		"Do not start this installation again after the import: both would execute the same runs.\n", name, rows, data.KeyLocation())
	return err
}
