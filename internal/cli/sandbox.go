package cli

import (
	"os"

	"github.com/stepmill/stepmill/internal/app"
)

// sandboxCommand is the other end of a server: the process that runs scripts.
type sandboxCommand struct {
	Memory int `default:"64" help:"MiB that a script may use."`
}

// Run runs scripts until the server goes away.
func (c *sandboxCommand) Run(con *console) error {
	return app.Sandbox(os.Stdin, con.out, c.Memory)
}
