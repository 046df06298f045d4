package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type filesCommand struct {
	Verify verifyFilesCommand `cmd:"" help:"Read the bytes of all files, and list those whose bytes are missing or damaged."`
}

type verifyFilesCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run verifies the files.
func (c *verifyFilesCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		result, err := admin.VerifyFiles(con)
		if err != nil {
			return err
		}
		rows := [][]string{{"FILE", "WORKSPACE", "NAME", "PROBLEM"}}
		for _, f := range result.Damaged {
			rows = append(rows, []string{f.ID, f.WorkspaceID, f.Name, f.Problem})
		}
		if len(result.Damaged) > 0 || c.JSON {
			err = printResult(con, c.JSON, result, rows)
		} else {
			_, err = fmt.Fprintf(con.out, "the bytes of all files are intact (%d read)\n", result.Blobs)
		}
		if err != nil {
			return err
		}
		if len(result.Damaged) > 0 {
			return fmt.Errorf("the bytes of %d files are missing or damaged", len(result.Damaged))
		}
		return nil
	})
}
