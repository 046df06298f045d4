package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

// stream is the name that stands for standard input and output.
const stream = "-"

type exportCommand struct {
	File string `arg:"" help:"The file to write; it must not exist. - writes to standard output."`
}

// Run exports the installation.
func (c *exportCommand) Run(con *console, data config.Data) error {
	var rows int64
	var err error
	told, name := con.out, c.File
	switch {
	case c.File != stream:
		rows, err = app.Export(con, data, c.File)
	case terminal(con.out):
		return errors.New("an export is not for a terminal: name a file, or pass standard output on")
	default:
		rows, err = app.ExportTo(con, data, con.out)
		told, name = con.err, "the export"
	}
	if err != nil {
		return err
	}
	return tellExported(told, name, rows, data)
}

func tellExported(to io.Writer, name string, rows int64, data config.Data) error {
	_, err := fmt.Fprintf(to, "wrote %s with %d rows\nThe master key is not in it. It is %s: the installation that imports it needs the same one.\n"+
		"Do not start this one again after that: both would go on with the same runs.\n", name, rows, data.KeyPlace())
	return err
}
