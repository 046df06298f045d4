package cli

import (
	"fmt"
	"runtime"

	"github.com/stepmill/stepmill/internal/config"
)

type versionCommand struct{}

// Run prints the version.
func (c *versionCommand) Run(con *console) error {
	_, err := fmt.Fprintf(con.out, "stepmill %s (%s, %s/%s)\n", config.VersionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
