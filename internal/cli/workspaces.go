package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type workspacesCommand struct {
	Create createWorkspaceCommand `cmd:"" help:"Create a workspace and print its first admin key."`
	List   listWorkspacesCommand  `cmd:"" help:"List workspaces."`
	Update updateWorkspaceCommand `cmd:"" help:"Change the name, plan or rate limit of a workspace."`
}

type createWorkspaceCommand struct {
	Name              string `arg:"" help:"The name of the workspace."`
	Plan              string `default:"free" enum:"free,pro,enterprise" help:"free, pro or enterprise."`
	RequestsPerMinute *int   `placeholder:"N" help:"Requests per minute. Only for enterprise."`
	JSON              bool   `help:"Print JSON."`
}

// Run creates a workspace.
func (c *createWorkspaceCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		return admin.CreateWorkspace(con, c.Name, c.Plan, c.RequestsPerMinute, func(w app.Workspace, key string) error {
			if !c.JSON {
				return con.show(fmt.Sprintf("workspace  %s\nadmin key  %s", w.ID, key))
			}
			err := printResult(con, true, struct {
				app.Workspace
				APIKey string `json:"api_key"`
			}{w, key}, nil)
			return errors.Join(err, con.confirm())
		})
	})
}

type listWorkspacesCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run lists workspaces.
func (c *listWorkspacesCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		workspaces, err := admin.Workspaces(con)
		if err != nil {
			return err
		}
		return printResult(con, c.JSON, workspaces, workspaceRows(workspaces...))
	})
}

type updateWorkspaceCommand struct {
	ID                string  `arg:"" help:"The id of the workspace, as listed."`
	Name              *string `help:"The new name."`
	Plan              *string `help:"free, pro or enterprise."`
	RequestsPerMinute *int    `placeholder:"N" help:"Requests per minute. Only for enterprise."`
	JSON              bool    `help:"Print JSON."`
}

// Run updates a workspace.
func (c *updateWorkspaceCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		w, err := admin.UpdateWorkspace(con, c.ID, c.Name, c.Plan, c.RequestsPerMinute)
		if err != nil {
			return err
		}
		return printResult(con, c.JSON, w, workspaceRows(w))
	})
}

func workspaceRows(workspaces ...app.Workspace) [][]string {
	rows := [][]string{{"ID", "NAME", "PLAN", "REQUESTS/MIN", "CREATED"}}
	for _, w := range workspaces {
		rows = append(rows, []string{w.ID, w.Name, w.Plan, strconv.Itoa(w.RequestsPerMinute), formatTime(&w.CreatedAt)})
	}
	return rows
}
