// Command stepmill runs the Stepmill service and its command line.
package main

import (
	"context"
	"os"

	"github.com/stepmill/stepmill/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
