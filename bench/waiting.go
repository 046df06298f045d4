package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// waitOneHour is a workflow whose runs only wait.
const waitOneHour = `{"state":"active","steps":[{"id":"wait","uses":"flow.wait","with":{"for":"1h"}}]}`

// waiting measures the memory usage of waiting runs. They are rows, so the memory
// of the server must not grow with them.
func waiting(ctx context.Context, dir string, runs int) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn"}
	server, err := start(ctx, binary, args...)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %9s\n", "stepmill, runs that wait for an hour", "MiB")
	fmt.Printf("%-44s %9.0f\n", "resident on a new directory", server.memory())
	begun := time.Now()
	if err := startConcurrently(server, waitOneHour, runs); err != nil {
		return err
	}
	took := time.Since(begun)
	fmt.Printf("%-44s %9.0f\n", fmt.Sprintf("resident after %d starts in %.0f s", runs, took.Seconds()), server.memory())
	if err := settle(ctx); err != nil {
		return err
	}
	fmt.Printf("%-44s %9.0f\n", "resident a while later", server.memory())
	if err := server.stop(); err != nil {
		return err
	}
	key := server.key
	if server, err = restart(ctx, binary, args...); err != nil {
		return err
	}
	server.key = key
	fmt.Printf("%-44s %9.0f\n", fmt.Sprintf("resident after a restart that took %s", server.ready.Round(time.Millisecond)), server.memory())
	if err := settle(ctx); err != nil {
		return err
	}
	fmt.Printf("%-44s %9.0f\n", "resident a while later", server.memory())
	return server.stop()
}

// settle waits until a server is idle.
func settle(ctx context.Context) error {
	select {
	case <-time.After(15 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startConcurrently starts runs of a workflow from many clients.
func startConcurrently(server *process, workflow string, runs int) error {
	setup := &client{server: server}
	workspaces, err := setup.workspaces(8)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, len(workspaces))
	for i, w := range workspaces {
		id, err := setup.workflow(w.key, workflow)
		if err != nil {
			return err
		}
		share := runs / len(workspaces)
		if i == 0 {
			share += runs % len(workspaces)
		}
		wg.Go(func() { errs <- startMany(server.address, w.key, id, share) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// startMany starts runs of one workflow, several at a time.
func startMany(address, key, workflowID string, runs int) error {
	const clients = 4
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		wg.Go(func() {
			conn, err := dial(address)
			for n := i; n < runs && err == nil; n += clients {
				var status int
				var body []byte
				status, body, err = conn.do(newRequest("POST", "/v1/workflows/"+workflowID+"/runs", key, `{"payload":{"name":"Ada","n":21}}`))
				if err == nil && status != 201 {
					err = fmt.Errorf("start a run: %d: %s", status, body)
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return firstError(errs...)
}
