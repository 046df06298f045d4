package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// dailySchedule is a workflow with a schedule that does not fire during the
// measurement.
const dailySchedule = `{"state":"active","steps":[],"triggers":[{"id":"daily","type":"schedule","every":"1d"}]}`

// idlePeriod is how long an idle server is measured.
const idlePeriod = time.Minute

// schedules measures the cost of schedules that are not due: the CPU time of a
// server without schedules and with many.
func schedules(ctx context.Context, dir string, n int) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %16s %9s\n", "stepmill, idle", "CPU ms/minute", "MiB")
	if err := idle(ctx, server, "without schedules"); err != nil {
		return err
	}
	setup := &client{server: server}
	workspaces, err := setup.workspaces(8)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(workspaces))
	for i, w := range workspaces {
		wg.Go(func() {
			each := &client{server: server}
			for range n / len(workspaces) {
				if _, errs[i] = each.workflow(w.key, dailySchedule); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := firstError(errs...); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	if err := idle(ctx, server, fmt.Sprintf("with %d schedules", n)); err != nil {
		return err
	}
	return server.stop()
}

// idle prints the resource usage of an idle server.
func idle(ctx context.Context, server *process, name string) error {
	before := server.cpu()
	select {
	case <-time.After(idlePeriod):
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Printf("%-44s %16d %9.0f\n", name, (server.cpu() - before).Milliseconds(), server.memory())
	return nil
}
