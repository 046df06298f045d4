package cli

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type workerCommand struct {
	config.Worker
	config.Log
}

// Run executes runs until the process receives a signal to stop.
func (c *workerCommand) Run(con *console, data config.Data) error {
	tuneGC()
	ctx, release := notifyStop(con)
	defer release()
	worker, err := app.NewWorker(ctx, data, c.Worker, newLogger(con.err, c.Log))
	if err != nil {
		return err
	}
	fmt.Fprintf(con.out, "Stepmill %s executes runs of the shared database\n", config.VersionText())
	return worker.Run(ctx)
}
