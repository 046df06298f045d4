package cli

import (
	"strings"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type usersCommand struct {
	List       listUsersCommand  `cmd:"" help:"List users."`
	CreateLink createLinkCommand `cmd:"" help:"Print a single-use link that creates the first user or resets a password."`
}

type listUsersCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run lists users.
func (c *listUsersCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		users, err := admin.Users(con)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "EMAIL", "NAME", "WORKSPACES", "CREATED", "LAST SEEN"}}
		for _, u := range users {
			rows = append(rows, []string{u.ID, u.Email, u.Name, strings.Join(u.Workspaces, " "), formatTime(&u.CreatedAt), formatTime(u.LastSeenAt)})
		}
		return printResult(con, c.JSON, users, rows)
	})
}

type createLinkCommand struct {
	config.Endpoint
	Email string `placeholder:"ADDRESS" help:"The user whose password to reset (default: print the link for the first user)."`
}

// Run prints a link.
func (c *createLinkCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		return admin.CreateLink(con, c.Endpoint, c.Email, con.show)
	})
}
