package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type templatesCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run lists the templates.
func (c *templatesCommand) Run(con *console) error {
	templates, err := app.Templates()
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "CATEGORY", "TITLE"}}
	for _, t := range templates {
		rows = append(rows, []string{t.Name, t.Category, t.Title})
	}
	return printResult(con, c.JSON, templates, rows)
}

type workflowsCommand struct {
	New newWorkflowCommand `cmd:"" help:"Create a draft workflow and print its id."`
}

type newWorkflowCommand struct {
	Template  string            `placeholder:"NAME" help:"The template to start from. stepmill templates lists them."`
	Name      string            `help:"The name of the workflow (default: the title of the template)."`
	Input     map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A value for an input of the template. stepmill templates --json lists its inputs. Can be repeated."`
	Workspace string            `placeholder:"ID" help:"The workspace of the workflow (default: the first)."`
}

// Run creates a workflow.
func (c *newWorkflowCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		id, err := admin.NewWorkflow(con, c.Workspace, c.Template, c.Name, c.Input)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(con.out, id)
		return err
	})
}
