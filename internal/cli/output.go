package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

// withAdmin calls do with the installation. While a server has it open, the command
// line is sent to the server, which calls do.
func withAdmin(con *console, data config.Data, do func(*app.Admin) error) error {
	if con.admin != nil {
		return do(con.admin)
	}
	return app.WithAdmin(con, data, con.args, con.out, con.err, do)
}

// show prints a line that nobody can read again later. It returns nil when the line has
// been printed where the command was started.
func (c *console) show(line string) error {
	if _, err := fmt.Fprintln(c.out, line); err != nil {
		return err
	}
	return c.confirm()
}

// confirm returns nil when all output so far has been printed where the command was
// started, which may be another process.
func (c *console) confirm() error {
	if out, remote := c.out.(interface{ Confirm() error }); remote {
		return out.Confirm()
	}
	return nil
}

// printResult prints rows as a table, or the value as JSON.
func printResult(con *console, asJSON bool, value any, rows [][]string) error {
	if asJSON {
		encoder := json.NewEncoder(con.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	table := tabwriter.NewWriter(con.out, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}
