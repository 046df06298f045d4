package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// builderRequests are what the builder requests before anything is added or opened.
var builderRequests = []string{"/v1/actions?limit=100", "/v1/schemas/workflow.json?services=false", "/v1/connections?limit=100", "/v1/secrets?limit=100", "/v1/variables?limit=100"}

// catalog compares servers with the shipped integrations and with generated ones that have
// this many more operations: the time to start, the memory at rest, and what the builder
// loads. The servers start in turns, so that changes in the machine's load affect both alike.
func catalog(ctx context.Context, dir string, operations int) error {
	const starts = 15
	shipped, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	larger, err := buildLarger(ctx, dir, operations)
	if err != nil {
		return err
	}
	rows := []*catalogRow{{name: "shipped", binary: shipped}, {name: fmt.Sprintf("%d more operations", operations), binary: larger}}
	for _, row := range rows {
		if err := row.first(ctx, filepath.Join(dir, filepath.Base(row.binary)+"-data")); err != nil {
			return err
		}
	}
	for range starts {
		for _, row := range rows {
			if err := row.restart(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%-34s %9s %9s %14s %14s\n", "catalog", "start ms", "idle MiB", "builder KiB", "picker KiB")
	for _, row := range rows {
		fmt.Printf("%-34s %9.0f %9.1f %14.1f %14.1f\n", row.name, middle(row.took), middle(row.memory), row.builder, row.picker)
	}
	return nil
}

// catalogRow has what is measured of a server.
type catalogRow struct {
	name, binary    string
	args            []string
	took, memory    []float64
	builder, picker float64
}

// first starts the server on new data, and measures what the builder requests.
func (c *catalogRow) first(ctx context.Context, data string) error {
	c.args = []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--log-level", "warn"}
	server, err := start(ctx, c.binary, c.args...)
	if err != nil {
		return err
	}
	if c.builder, err = sizeOf(server, server.key, builderRequests...); err != nil {
		return err
	}
	if c.picker, err = sizeOf(server, server.key, "/v1/integrations?limit=100"); err != nil {
		return err
	}
	return server.stop()
}

// restart measures another start on the same data.
func (c *catalogRow) restart(ctx context.Context) error {
	server, err := restart(ctx, c.binary, c.args...)
	if err != nil {
		return err
	}
	c.took = append(c.took, float64(server.ready.Microseconds())/1000)
	time.Sleep(2 * time.Second) // what is only needed at the start has been released
	c.memory = append(c.memory, server.memory())
	return server.stop()
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// sizeOf returns the size of responses, in KiB.
func sizeOf(server *process, key string, paths ...string) (float64, error) {
	conn, err := dial(server.address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.conn.Close() }()
	size := 0
	for _, path := range paths {
		status, body, err := conn.do(newRequest("GET", path, key, ""))
		if err != nil || status != 200 {
			return 0, fmt.Errorf("%s: %d %w", path, status, err)
		}
		size += len(body)
	}
	return float64(size) / 1024, nil
}

// buildLarger builds the product from a copy of the source with generated integrations.
func buildLarger(ctx context.Context, dir string, operations int) (string, error) {
	source := filepath.Join(dir, "source")
	for _, name := range []string{"cmd", "internal", "integrations", "openapi", "web/dist", "test/generated"} {
		if err := os.CopyFS(filepath.Join(source, name), os.DirFS(name)); err != nil {
			return "", err
		}
	}
	files, err := filepath.Glob("web/*.go")
	if err != nil {
		return "", err
	}
	for _, name := range append(files, "go.mod", "go.sum") {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(source, name), text, 0o600); err != nil { //nolint:gosec // the names are those of this module
			return "", err
		}
	}
	if err := generate(filepath.Join(source, "integrations"), operations); err != nil {
		return "", err
	}
	target, err := filepath.Abs(filepath.Join(dir, "larger"))
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{{"test", "./integrations", "-run", "TestIndex", "-update"}, {"build", "-o", target, "./cmd/stepmill"}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stderr = source, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
	}
	return target, nil
}

// template is the integration that is copied: its operations, without the hidden ones, are
// as many as those of most others.
const template, templateOperations = "telegram", 18

// generate adds integrations to a folder that have this many operations in all.
func generate(folder string, operations int) error {
	for n := range (operations + templateOperations - 1) / templateOperations {
		id := fmt.Sprintf("copy_%04d", n)
		if err := os.CopyFS(filepath.Join(folder, id), os.DirFS(filepath.Join(folder, template))); err != nil {
			return err
		}
		manifest := filepath.Join(folder, id, "integration.yaml")
		text, err := os.ReadFile(manifest)
		if err != nil {
			return err
		}
		changed, found := strings.CutPrefix(string(text), "id: "+template+"\n")
		if !found {
			return errors.New("the manifest does not begin with its id")
		}
		if err := os.WriteFile(manifest, []byte("id: "+id+"\n"+changed), 0o600); err != nil { //nolint:gosec // the folder is a copy that this command has made
			return err
		}
	}
	return nil
}
