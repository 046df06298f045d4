package cli

import (
	"os"

	"github.com/stepmill/stepmill/internal/app"
)

// sandboxCommand is the child process of a server that runs scripts.
type sandboxCommand struct {
	Memory int `default:"64" help:"Memory limit of a script, in MiB."`
}

// Run runs scripts until the server closes standard input.
func (c *sandboxCommand) Run(con *console) error {
	return app.Sandbox(os.Stdin, con.out, c.Memory)
}
