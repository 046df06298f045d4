package cli

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type usersCommand struct {
	List       listUsersCommand  `cmd:"" help:"List the users."`
	CreateLink createLinkCommand `cmd:"" help:"Print a link that works once, for the first user or for a new password."`
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
			rows = append(rows, []string{u.ID, u.Email, u.Name, strings.Join(u.Workspaces, " "), moment(&u.CreatedAt), moment(u.LastSeenAt)})
		}
		return show(con, c.JSON, users, rows)
	})
}

type createLinkCommand struct {
	config.Place
	Email string `placeholder:"ADDRESS" help:"The user who needs a new password (default: the link for the first user)."`
}

// Run prints a link.
func (c *createLinkCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		link, err := admin.CreateLink(con, c.Place, c.Email)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(con.out, link)
		return err
	})
}
