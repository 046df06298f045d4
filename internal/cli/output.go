package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

// withAdmin opens the installation, calls do and closes it.
func withAdmin(con *console, data config.Data, do func(*app.Admin) error) error {
	admin, err := app.OpenAdmin(con, data)
	if err != nil {
		return err
	}
	return errors.Join(do(admin), admin.Close())
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

// formatTime formats a time, or returns "-" for nil.
func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}
